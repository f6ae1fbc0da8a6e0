/** With a certificate the listener speaks https, its cookies are for https only, and workers that trust it reach it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { makeHomeFolder, millrace, productMain, productNode, removeHome } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const homes: string[] = [];
const workers: ChildProcess[] = [];
afterAll(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  for (const home of homes) await removeHome(home);
});

interface Reply {
  readonly status: number;
  readonly cookie: string;
  readonly text: string;
}

function ask(url: string, method: string, body?: string, key?: string): Promise<Reply> {
  const agent = new Agent({ rejectUnauthorized: false });
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
    const sent = request(url, { method, agent, headers }, (reply) => {
      let text = '';
      reply.on('data', (chunk: Buffer) => (text += chunk.toString()));
      reply.on('end', () =>
        resolve({ status: reply.statusCode ?? 0, cookie: reply.headers['set-cookie']?.[0] ?? '', text }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Answers what it has said. */
function startWorker(env: NodeJS.ProcessEnv): () => string {
  const child = spawn(productNode, [productMain, 'worker'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  workers.push(child);
  return () => output;
}

it('the listener serves https with Secure cookies, and only workers that trust its certificate connect', async () => {
  const home = await makeHomeFolder();
  homes.push(home);
  const [cert, key] = [join(home, 'cert.pem'), join(home, 'key.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1', '-nodes'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject], {
    stdio: 'ignore',
  });
  const env = { ...process.env, MILLRACE_TLS_CERT: cert, MILLRACE_TLS_KEY: key, MILLRACE_LOG: 'warn' };
  const child = spawn(productNode, [productMain, 'up', '--home', home, '--port', '0', '--no-worker'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const url = await until('it prints its address', () => /at (https:\S+)/.exec(output)?.[1]);
  await until('it is healthy', async () => (await ask(`${url}/healthz`, 'GET')).status === 200 || undefined);
  const link = /#(mrl_\S+)/.exec(output)?.[1];
  const signedIn = await ask(`${url}/api/session`, 'POST', JSON.stringify({ link }));
  expect(signedIn.status).toBe(201);
  expect(signedIn.cookie).toContain('; Secure');
  const rootKey = (await readFile(join(home, 'root-key'), 'utf8')).trim();
  const made = await ask(`${url}/api/keys`, 'POST', JSON.stringify({ name: 'w', role: 'worker' }), rootKey);
  const { key: workerKey } = JSON.parse(made.text) as { key: string };
  const wire = { MILLRACE_URL: url, MILLRACE_KEY: workerKey };
  const distrusting = startWorker({ ...process.env, ...wire, MILLRACE_LOG: 'warn' });
  startWorker({ ...process.env, ...wire, NODE_EXTRA_CA_CERTS: cert, MILLRACE_LOG: 'error' });
  const seen = await until('a worker is seen', async () => {
    const found = JSON.parse((await ask(`${url}/api/workers`, 'GET', undefined, rootKey)).text) as unknown[];
    return found.length > 0 ? found : undefined;
  });
  expect(seen).toHaveLength(1);
  await until('the other says why', () => /self-signed certificate/.test(distrusting()) || undefined);
  await millrace(['down'], { home });
});
