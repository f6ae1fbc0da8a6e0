/** With a certificate the listener speaks https: cookies, workers, and floods of handshakes. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, expect, it } from 'vitest';
import { measureBlocking } from '../harness/blocking.ts';
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

interface SecureProduct {
  readonly home: string;
  readonly url: string;
  readonly cert: string;
  readonly child: ChildProcess;
  readonly output: () => string;
}

async function startSecure(args: readonly string[]): Promise<SecureProduct> {
  const home = await makeHomeFolder();
  homes.push(home);
  const [cert, key] = [join(home, 'cert.pem'), join(home, 'key.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1', '-nodes'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject], {
    stdio: 'ignore',
  });
  const env = { ...process.env, MILLRACE_TLS_CERT: cert, MILLRACE_TLS_KEY: key, MILLRACE_LOG: 'warn' };
  const child = spawn(productNode, [productMain, 'up', '--home', home, '--port', '0', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const url = await until('it prints its address', () => /at (https:\S+)/.exec(output)?.[1]);
  await until('it is healthy', async () => (await ask(`${url}/healthz`, 'GET')).status === 200 || undefined);
  return { home, url, cert, child, output: () => output };
}

it('the listener serves https with Secure cookies, and only workers that trust its certificate connect', async () => {
  const { home, url, cert, output } = await startSecure(['--no-worker']);
  const link = /#(mrl_\S+)/.exec(output())?.[1];
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

/** The first bytes that a client sends. They can be sent again on any number of connections. */
async function recordHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  const { port } = await new Promise<AddressInfo>((resolve) =>
    server.once('listening', () => resolve(server.address() as AddressInfo)),
  );
  const client = connectTls({ port, host: '127.0.0.1' }).on('error', () => {});
  const hello = await new Promise<Buffer>((resolve) =>
    server.once('connection', (socket) => socket.on('error', () => {}).once('data', resolve)),
  );
  client.destroy();
  server.close();
  return hello;
}

const connected = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.on('error', reject);
  });

it('two thousand handshakes that begin at once and do not go on keep no other client waiting', {
  timeout: 120_000,
}, async () => {
  const { url, child } = await startSecure(['--no-worker']);
  const [hello, port] = [await recordHello(), Number(new URL(url).port)];
  const flood = async (): Promise<void> => {
    const sockets: Socket[] = [];
    for (let i = 0; i < 2_000; i++) sockets.push(await connected(port));
    const closed = sockets.map(
      (socket) => new Promise((resolve) => socket.on('error', () => {}).once('close', resolve)),
    );
    for (const socket of sockets) socket.resume().write(hello);
    await Promise.all(closed);
  };
  const longestMs = await measureBlocking({ url, pid: child.pid ?? 0 }, flood, 200);
  expect(longestMs).toBeLessThanOrEqual(200);
});
