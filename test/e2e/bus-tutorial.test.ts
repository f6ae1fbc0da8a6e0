/**
 * The tutorial of docs/bus.md, its commands in the order in which a reader types them, and the examples that it and docs/bus/how-to.md
 * use: a publisher, a receiver that verifies signatures, and the document of a subscription.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeBusClient } from '../harness/bus-client.ts';
import { makeBusReceiver } from '../harness/bus-receiver.ts';
import { lastingPort } from '../harness/lasting-port.ts';
import {
  type Answer,
  millrace,
  type Product,
  productMain,
  productNode,
  removeHome,
  startProduct,
} from '../harness/product.ts';
import { busEnvironment } from '../harness/realistic/bus.ts';
import { until } from '../harness/until.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const examples = join(root, 'examples/bus');
let product: Product;
let port: number;

beforeAll(async () => {
  port = await lastingPort();
  product = await startProduct({ env: busEnvironment });
  await warmUp();
});
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
});

interface SubscriptionBody {
  topics: string[];
  filter: Record<string, unknown>;
}

/** `subscriber test` waits 5 s for a courier, which may take longer to start on a busy machine. */
async function warmUp(): Promise<void> {
  const receiver = await makeBusReceiver();
  const client = await makeBusClient(product, 'warm');
  await client.call('POST /bus/subscription', { body: { topics: ['warm'], callback: receiver.url, timeout: 0 } });
  await client.publish('warm', { type: 'noop', url: 'https://shop.example/' });
  await receiver.accepted(1);
  await receiver.close();
}

const access = () => ({ MILLRACE_HOME: product.home, MILLRACE_URL: product.url });

function run(file: string, args: readonly string[], env: Record<string, string>): Promise<Answer> {
  return new Promise((resolve) => {
    const options = { cwd: root, env: { ...process.env, ...env } };
    const child = execFile(file, args, options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}

/** The commands of the tutorial, as one script. A receiver that is started counts as ready when it says where it listens. */
async function readTutorial(): Promise<{ readonly server: string; readonly script: string }> {
  const page = await readFile(join(root, 'docs/bus.md'), 'utf8');
  const [, after = ''] = page.split('\n## Tutorial\n');
  const [section = ''] = after.split('\n## ', 1);
  const [server = '', ...blocks] = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, body = '']) => body);
  const commands = blocks
    .join('')
    .replaceAll('4000', String(port))
    .replaceAll(/^(PORT.*) &$/gm, '$1 > "$LOG" & until grep -q "listening at" "$LOG"; do sleep 0.1; done');
  const script = `set -e\nnpx() { shift; "${productNode}" "${productMain}" "$@"; }\nLOG=$(mktemp)\n${commands}\ncat "$LOG" && rm "$LOG"`;
  return { server, script };
}

it('the commands of the tutorial work in their order, and each event arrives', async () => {
  const { server, script } = await readTutorial();
  for (const [name, value] of Object.entries(busEnvironment)) expect(server).toContain(`${name}=${value}`);
  const ran = await run('bash', ['-c', script], access());
  expect(ran, ran.stderr).toMatchObject({ code: 0 });
  expect(ran.stdout).toMatch(/^HTTP 204 after \d+ ms$/m);
  // the second receiver began after the outage: it gets what waited, then the replay
  const arrived = ran.stdout.slice(ran.stdout.lastIndexOf('listening at'));
  for (const line of ['update https://shop.example/orders/2', 'delete https://shop.example/orders/2']) {
    expect(arrived).toContain(`orders ${line}`);
  }
  expect(arrived.indexOf('orders update')).toBeLessThan(arrived.indexOf('orders delete'));
  const left = await product.call('GET /bus/subscribers', { query: {} });
  expect(JSON.stringify(left)).not.toContain('billing');
}, 180_000);

describe('examples/bus', () => {
  it('publish.mjs prints the number of the event, and the fault of one that is refused', async () => {
    const { key } = await makeBusClient(product, 'example');
    const publish = (...args: string[]) =>
      run(productNode, [join(examples, 'publish.mjs'), ...args], { ...access(), MILLRACE_KEY: key });
    const published = await publish('examples', 'https://shop.example/orders/1', 'update', '{"total": 5}');
    expect(published).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) as unknown });
    expect(await publish('examples', 'http://shop.example/orders/1')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('url') as unknown,
    });
  });

  it('receive.mjs accepts what is signed with its secret, handles it once, and refuses all else', async () => {
    const key = Buffer.alloc(32, 7);
    const env = { ...process.env, PORT: '0', WEBHOOK_SECRET: `whsec_${key.toString('base64')}` };
    const receiver = spawn(productNode, [join(examples, 'receive.mjs')], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await checkReceiver(receiver, key);
    } finally {
      receiver.kill();
    }
  });

  it('subscription.json is a subscription that the bus accepts', async () => {
    const client = await makeBusClient(product, 'documents');
    const body = JSON.parse(await readFile(join(examples, 'subscription.json'), 'utf8')) as SubscriptionBody;
    await client.call('POST /bus/subscription', { body });
    expect(await client.call('GET /bus/subscriber')).toMatchObject({
      topics: body.topics,
      filter: body.filter,
      strands: 8,
    });
    const shown = await millrace(['subscriber', 'show'], { env: { ...access(), MILLRACE_KEY: client.key } });
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('by key, 8 strands') as unknown });
  });
});

async function checkReceiver(receiver: ChildProcess, key: Buffer): Promise<void> {
  let output = '';
  receiver.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const url = await until('it listens', () => /at (http\S+)/.exec(output)?.[1]);
  const body = JSON.stringify([{ topic: 'orders', type: 'update', url: 'https://shop.example/1', t: 1, id: '7' }]);
  const send = async (id: string, signedBody: string, ageSeconds = 0): Promise<number> => {
    const timestamp = String(Math.floor(Date.now() / 1_000) - ageSeconds);
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${signedBody}`).digest('base64');
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')} v1,${signature}`,
    };
    return (await fetch(url, { method: 'POST', body, headers })).status;
  };
  const id = randomUUID();
  expect(await send(id, `${body} `)).toBe(401);
  expect(await send(id, body, 3_600)).toBe(401);
  expect((await fetch(url, { method: 'POST', body })).status).toBe(401);
  expect(output).not.toContain('orders');
  expect(await send(id, body)).toBe(204);
  expect(await send(id, body)).toBe(204);
  await until('it has said so', () => output.includes(`batch ${id} again`) || undefined);
  expect(output.match(/^7 orders update/gm)).toHaveLength(1);
}
