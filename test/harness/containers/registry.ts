/** A real registry of images, with a user `reader` and the password `secret:1`, in a temporary folder. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { lastingPort } from '../lasting-port.ts';
import { until } from '../until.ts';

const run = promisify(execFile);

export interface Registry {
  /** `HOST:PORT`, the first part of its images' names. */
  readonly name: string;
  /** The content of a `config.json` with the login. */
  readonly login: string;
  readonly stop: () => Promise<void>;
}

export async function startRegistry(password = 'secret:1'): Promise<Registry> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-registry-'));
  const name = `127.0.0.1:${await lastingPort()}`;
  const { stdout } = await run('htpasswd', ['-Bbn', 'reader', password]);
  await writeFile(join(folder, 'users'), stdout);
  await writeFile(
    join(folder, 'config.yml'),
    `version: 0.1
storage: {filesystem: {rootdirectory: ${folder}/data}}
http: {addr: '${name}'}
auth: {htpasswd: {realm: test, path: ${folder}/users}}
`,
  );
  const child = spawn('docker-registry', ['serve', join(folder, 'config.yml')], { stdio: 'ignore' });
  // the registry must not outlive a test process that is killed
  const keeper = spawn('/bin/sh', ['-c', 'while read -r line; do :; done; kill -9 "$1"', 'keeper', String(child.pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await until('the registry answers', async () => (await fetch(`http://${name}/`).catch(() => undefined))?.ok);
  const auth = Buffer.from(`reader:${password}`).toString('base64');
  return {
    name,
    login: JSON.stringify({ auths: { [name]: { auth } } }),
    async stop() {
      const gone = once(child, 'exit');
      keeper.stdin.end();
      await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
