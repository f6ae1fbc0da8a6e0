/** No role starts with a faulty secret or a home that others can change. Secret files survive a crash at any step. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { checkpoints } from '../../src/app/checkpoints.ts';
import { type Answer, millrace, productMain, productNode } from '../harness/product.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-secrets-'));
afterAll(() => rmSync(folder, { recursive: true }));

function newHome(): string {
  return mkdtempSync(join(folder, 'home-'));
}

/** No server is there: a role that has read its secrets ends with another error. */
const env = { MILLRACE_DATABASE_URL: 'postgres://127.0.0.1:1/millrace', MILLRACE_LOG: 'silent' };

const start = (role: string, home: string): Promise<Answer> => millrace([role, '--home', home], { env });

const sound = { 'secret-key': 'a-secret-key-of-enough-characters', 'root-key': 'a-root-key-of-enough-characters' };

function write(home: string, files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(home, name), content, { mode: 0o600 });
}

/** One sentence, without a stack. */
function expectRefusal({ code, stdout, stderr }: Answer, parts: readonly string[]): void {
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr.trim().split('\n')).toHaveLength(1);
  for (const part of parts) expect(stderr).toContain(part);
}

/** A worker has a home only where that names its server. */
const server = { 'server.json': '{"url":"http://127.0.0.1:1"}' };

const rolesWithDatabase = ['up', 'api', 'launcher', 'host'];

describe.each([...rolesWithDatabase, 'worker'])('the role %s', (role) => {
  it.each(['secret-key', 'root-key'])(`the role ${role} does not start with a faulty %s`, async (name) => {
    for (const [fault, content] of [
      ['is empty', ''],
      ['is too short', 'short'],
      ['is malformed', '\0'.repeat(43)],
    ] as const) {
      const home = newHome();
      write(home, { ...sound, ...server, [name]: content });
      expectRefusal(await start(role, home), [`${join(home, name)} ${fault}`, 'Remedy:', `rm ${join(home, name)}`]);
      expect(readFileSync(join(home, name), 'utf8')).toBe(content);
    }
  });

  it(`the role ${role} does not start on a home that others may write to or own`, async () => {
    const home = newHome();
    write(home, { ...sound, ...server });
    chmodSync(home, 0o777);
    expectRefusal(await start(role, home), [`chmod 700 ${home}`]);
    chmodSync(home, 0o700);
    if (process.getuid?.() !== 0) return;
    chownSync(home, 12_345, 12_345);
    expectRefusal(await start(role, home), ['belongs to user 12345']);
  });
});

it.each(rolesWithDatabase)('the role %s reads sound secret files, and goes on to its database', async (role) => {
  const home = newHome();
  write(home, sound);
  expect((await start(role, home)).stderr).toContain('cannot be reached');
});

describe('secret files of a home', () => {
  const crashes = checkpoints.home.flatMap((name) => [1, 2].map((passage) => [name, passage] as const));

  it.each(crashes)(
    'the secret files are complete or absent when the first start dies at %s, passage %d',
    async (name, passage) => {
      const home = newHome();
      const died = spawnSync(productNode, [productMain, 'api', '--home', home], {
        env: { ...process.env, ...env, MILLRACE_CHECKPOINT: `${name}:${passage}` },
      });
      expect(died.signal).toBe('SIGKILL');
      const left = readdirSync(home).filter((file) => !file.endsWith('.draft'));
      const contents = left.map((file) => readFileSync(join(home, file), 'utf8'));
      expect((await start('api', home)).stderr).toContain('cannot be reached');
      expect(readdirSync(home).toSorted()).toEqual(['root-key', 'secret-key']);
      expect(left.map((file) => readFileSync(join(home, file), 'utf8'))).toEqual(contents);
    },
  );
});

describe('invalid home', () => {
  it('a start on a home that is a file, or whose lock is one, is refused in one sentence', async () => {
    const file = join(newHome(), 'file');
    writeFileSync(file, '');
    expectRefusal(await start('up', file), ['is not a folder', 'MILLRACE_HOME']);
    const home = newHome();
    mkdirSync(join(home, 'up.lock'));
    expectRefusal(await start('up', home), [`rm -r ${join(home, 'up.lock')}`]);
  });
});
