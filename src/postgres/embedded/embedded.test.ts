import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { compileInto } from '../../../test/harness/compiled.ts';
import { until } from '../../../test/harness/until.ts';
import { silent } from '../../kernel/log.ts';
import { readProcessStat } from '../../kernel/process/process-stat.ts';
import { connectionFor, type EmbeddedServer, startEmbedded, stopEmbedded } from './embedded.ts';
import { homeHash, tempFolder } from './home.ts';
import { supervised } from './supervised-server.ts';

const folder = mkdtempSync('/tmp/embedded-test-');
const compiled = join(folder, 'compiled');
const settings = { fsync: 'off' };
const homes: string[] = [];
const children: ChildProcess[] = [];

function newHome(name = `home-${homes.length}`): string {
  const home = join(folder, name);
  homes.push(home);
  return home;
}

async function start(home: string, over: Record<string, string> = settings): Promise<EmbeddedServer> {
  return await startEmbedded({ home, log: silent, settings: over });
}

/** The first column of the first row. */
async function ask(server: EmbeddedServer, text: string): Promise<unknown> {
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

/** Starts the server from another process, which can be killed. Its output is one line once the server is up. */
function startInChild(home: string): ChildProcess {
  const program = `
    import { startEmbedded } from '${compiled}/postgres/embedded/embedded.js';
    import { silent } from '${compiled}/kernel/log.js';
    setInterval(() => {}, 1000);
    const { pid } = await startEmbedded({ home: '${home}', log: silent, settings: ${JSON.stringify(settings)} });
    console.log(pid);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
}

/** The pid of a server whose `up` was killed. */
async function orphan(home: string): Promise<number> {
  const child = startInChild(home);
  const pid = Number(String(await new Promise((resolve) => child.stdout?.once('data', resolve))));
  await kill(child);
  return pid;
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  if (child.kill('SIGKILL')) await ended;
}

/** Dead and not yet buried counts: an orphan's burial is the machine's affair. */
function isGone(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === '';
  } catch {
    return true;
  }
}

async function killServer(server: EmbeddedServer): Promise<void> {
  const ended = new Promise<void>((resolve) => server.onExit(resolve));
  process.kill(server.pid, 'SIGKILL');
  await ended;
}

beforeAll(() => {
  chmodSync(folder, 0o755);
  compileInto(compiled, 'postgres/embedded/embedded.ts');
});
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  for (const home of homes) await stopEmbedded(home, { mode: 'immediate' });
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('an embedded server', () => {
  it('comes up cold and warm, and keeps its data', async () => {
    const home = newHome();
    const times: number[] = [];
    for (const round of ['cold', 'warm', 'warm again']) {
      const before = performance.now();
      const server = await start(home, {});
      times.push(performance.now() - before);
      await ask(server, 'create table if not exists kept (n int)');
      await ask(server, 'insert into kept values (1)');
      expect(server.adopted, round).toBe(false);
      await server.stop();
      expect(isGone(server.pid)).toBe(true);
    }
    const server = await start(home, {});
    expect(await ask(server, 'select count(*)::int from kept')).toBe(3);
    console.info(`embedded PostgreSQL: cold, warm, warm: ${times.map((ms) => Math.round(ms)).join(', ')} ms`);
  }, 120_000);

  it('has our settings, an address of its own, and a log', async () => {
    const home = newHome();
    const server = await start(home);
    const shown = async (name: string): Promise<unknown> => await ask(server, `show ${name}`);
    expect(await shown('listen_addresses')).toBe('');
    expect(await shown('max_connections')).toBe('1000');
    expect(await shown('fsync')).toBe('off');
    expect(await shown('server_encoding')).toBe('UTF8');
    expect(
      await ask(server, `select datlocprovider::text || datlocale from pg_database where datname = 'template1'`),
    ).toBe('bC.UTF-8');
    expect(await ask(server, `select upper('straße é') collate "default"`)).toContain('É');
    expect(server.connection.host).toBe(join(home, 'postgres'));
    expect(readFileSync(join(home, 'postgres.log'), 'utf8')).toContain('ready to accept connections');
  });

  it('leads a session of its own', async () => {
    const server = await start(newHome());
    expect(readProcessStat(server.pid)?.session).toBe(server.pid);
  });

  it('lets nobody else in: its socket lies in a folder that is its user’s alone', async () => {
    const server = await start(newHome());
    expect(statSync(server.connection.host).mode & 0o077).toBe(0);
    expect(await ask(server, `select count(*)::int from pg_hba_file_rules where auth_method <> 'peer'`)).toBe(0);
  });

  it('has its socket in the temp where the path is too long', async () => {
    const home = newHome(join('long', 'x'.repeat(100)));
    const server = await start(home);
    const sockets = tempFolder(home, 'postgres');
    expect(server.connection.host).toBe(sockets);
    expect(statSync(sockets).mode & 0o777).toBe(0o700);
    expect(await ask(server, 'select 1')).toBe(1);
    await server.stop();
    rmSync(sockets, { recursive: true });
  });

  it('takes a path with blanks, commas and quotes', async () => {
    const server = await start(newHome(`a "b", c'd`));
    expect(await ask(server, 'select 1')).toBe(1);
  });

  it('fails with what the server said, and can be started afterwards', async () => {
    const home = newHome();
    await expect(start(home, { shared_buffers: 'plenty' })).rejects.toThrow(/shared_buffers/);
    expect(await ask(await start(home), 'select 1')).toBe(1);
  });
});

describe('an orphaned server', () => {
  it('is adopted, and ended by its adopter', async () => {
    const home = newHome();
    const pid = await orphan(home);
    const server = await start(home);
    expect(server).toMatchObject({ pid, adopted: true });
    const ended = new Promise<void>((resolve) => server.onExit(resolve));
    await server.stop();
    await ended;
    expect(isGone(pid)).toBe(true);
  });

  it('with other settings is ended and started anew', async () => {
    const home = newHome();
    const pid = await orphan(home);
    const server = await start(home, { ...settings, work_mem: '5MB' });
    expect(server.adopted).toBe(false);
    expect(isGone(pid)).toBe(true);
    expect(await ask(server, 'show work_mem')).toBe('5MB');
  });

  it('is ended by `down`', async () => {
    const home = newHome();
    const pid = await orphan(home);
    expect(await stopEmbedded(home)).toBe(true);
    expect(isGone(pid)).toBe(true);
    expect(await stopEmbedded(home)).toBe(false);
  });
});

describe('the end of a server', () => {
  /** One whose checkpoint stands still until it is let go. */
  async function stuck(home: string): Promise<{ server: EmbeddedServer; checkpointer: number }> {
    const server = await start(home);
    const checkpointer = await ask(server, `select pid from pg_stat_activity where backend_type = 'checkpointer'`);
    process.kill(Number(checkpointer), 'SIGSTOP');
    return { server, checkpointer: Number(checkpointer) };
  }
  const log = (home: string): string => readFileSync(join(home, 'postgres.log'), 'utf8');

  it('waits for its checkpoint, and the next start has nothing to recover', async () => {
    const home = newHome();
    const { server, checkpointer } = await stuck(home);
    const stopping = server.stop();
    await sleep(3_000);
    expect(isGone(server.pid)).toBe(false);
    process.kill(checkpointer, 'SIGCONT');
    await stopping;
    expect(await ask(await start(home), 'select 1')).toBe(1);
    expect(log(home)).not.toContain('not properly shut down');
  });

  it('comes without one where it takes longer than it may', async () => {
    const home = newHome();
    const { server, checkpointer } = await stuck(home);
    const stopping = server.stop('fast', 200);
    await until('it is to end without', () => log(home).includes('immediate shutdown request'));
    process.kill(checkpointer, 'SIGCONT');
    await stopping;
    expect(isGone(server.pid)).toBe(true);
    expect(await ask(await start(home), 'select 1')).toBe(1);
    expect(log(home)).toContain('not properly shut down');
  });

  it('has little to write after a checkpoint', async () => {
    const server = await start(newHome());
    const at = (): Promise<unknown> => ask(server, 'select checkpoint_lsn::text from pg_control_checkpoint()');
    const before = await at();
    await ask(server, 'create table written as select 1 as n');
    await server.checkpoint();
    expect(await at()).not.toBe(before);
  });
});

describe('after kill -9', () => {
  it('of the postmaster beside a computing backend, the next start has every committed row', async () => {
    const first = await start(newHome(), {});
    await ask(first, 'create table kept as select 1 as n');
    const busy = ask(first, 'select count(*) from generate_series(1, 1000000000000) as n where n % 7 = 3').catch(
      () => 'lost',
    );
    await expect
      .poll(() => ask(first, `select count(*)::int from pg_stat_activity where query like '%% 7 = 3'`), {
        timeout: 10_000,
      })
      .toBe(1);
    await killServer(first);
    const second = await start(dirname(first.connection.host), {});
    expect(await ask(second, 'select n from kept')).toBe(1);
    expect(await busy).toBe('lost');
  });

  it('a pid file that names another, living process is no obstacle, and that process lives on', async () => {
    const first = await start(newHome());
    const data = first.connection.host;
    const { uid, gid } = statSync(data);
    await killServer(first);
    // of the same user: PostgreSQL itself tells strangers' processes apart
    const stranger = spawn('sleep', ['1000'], process.getuid?.() === 0 ? { uid, gid } : {});
    children.push(stranger);
    for (const file of ['postmaster.pid', '.s.PGSQL.5432.lock']) {
      const [, ...rest] = readFileSync(join(data, file), 'utf8').split('\n');
      writeFileSync(join(data, file), [String(stranger.pid), ...rest].join('\n'));
    }
    const second = await start(dirname(data));
    expect(await ask(second, 'select 1')).toBe(1);
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
  });

  it('in the middle of initdb, the next start begins again and leaves no remains', async () => {
    const home = newHome();
    const child = startInChild(home);
    const remains = (): string[] => [
      ...readdirSync('/dev/shm').filter((name) => name.includes(homeHash(home))),
      ...readdirSync(home).filter((name) => name.includes('.new-')),
    ];
    await expect.poll(() => readdirSync(folder), { interval: 5, timeout: 10_000 }).toContain(basename(home));
    await expect.poll(remains, { interval: 5, timeout: 10_000 }).not.toEqual([]);
    await kill(child);
    expect(readdirSync(home)).not.toContain('postgres');
    expect(await ask(await start(home), 'select 1')).toBe(1);
    // the orphaned initdb notices at its own pace
    await expect.poll(remains, { timeout: 10_000 }).toEqual([]);
  });

  it('of a supervised server, it comes back under the same address', async () => {
    const service = supervised({ home: newHome(), log: silent, settings });
    await service.start();
    const first = service.server();
    await killServer(first);
    await expect.poll(() => service.server().pid, { timeout: 10_000 }).not.toBe(first.pid);
    expect(await ask(first, 'select 1')).toBe(1);
    await service.stop();
    expect(isGone(service.server().pid)).toBe(true);
    await service.stop();
  });
});
