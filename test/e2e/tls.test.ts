/** With a certificate the listener speaks https, and its cookies are for https only. */
import { execFileSync, spawn } from 'node:child_process';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { makeHomeFolder, millrace, productMain, productNode, removeHome } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const homes: string[] = [];
afterAll(async () => {
  for (const home of homes) await removeHome(home);
});

interface Reply {
  readonly status: number;
  readonly cookie: string;
  readonly text: string;
}

function ask(url: string, method: string, body?: string): Promise<Reply> {
  const agent = new Agent({ rejectUnauthorized: false });
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers: { 'content-type': 'application/json' } }, (reply) => {
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

it('serves https and marks its cookie Secure', async () => {
  const home = await makeHomeFolder();
  homes.push(home);
  const [cert, key] = [join(home, 'cert.pem'), join(home, 'key.pem')];
  const subject = ['-subj', '/CN=localhost', '-days', '1', '-nodes'];
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
  const url = await until('it says where it is', () => /at (https:\S+)/.exec(output)?.[1]);
  await until('it is healthy', async () => (await ask(`${url}/healthz`, 'GET')).status === 200 || undefined);
  const link = /#(mrl_\S+)/.exec(output)?.[1];
  const signedIn = await ask(`${url}/api/session`, 'POST', JSON.stringify({ link }));
  expect(signedIn.status).toBe(201);
  expect(signedIn.cookie).toContain('; Secure');
  await millrace(['down'], { home });
});
