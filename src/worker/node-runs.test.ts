/** Runs of nodes on a worker, of each runtime: result, failure, facts, cancellation and timeout. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { wireKey, WireServer } from '../../test/conformance/wire-server.ts';
import type { HeldRun, Report, RuntimeBlock } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import { parseRanges } from '../outbound/addresses.ts';
import type { Runtime } from '../runtimes/contract.ts';
import { functionRuntime, type NodeContext } from '../runtimes/function/function.ts';
import { httpRuntime } from '../runtimes/http/http.ts';
import { none } from '../runtimes/none/runtime.ts';
import { processRuntime } from '../runtimes/process/process.ts';
import { makeWorker } from './worker.ts';

const patience = { timeout: 25_000, interval: 5 };
let server = new WireServer();
let worker: Service | undefined;

/** What the last request brought, for runs of kind `http`. */
let asked: Record<string, unknown> = {};
const receiver = createServer((incoming, answer) => {
  asked = incoming.headers;
  if (incoming.url === '/fails') answer.writeHead(500).end('why');
  else if (incoming.url === '/succeeds') answer.setHeader('content-type', 'application/json').end('{"n":7}');
});
let base = '';

beforeAll(async () => {
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  base = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
});
afterAll(() => {
  receiver.closeAllConnections();
  receiver.close();
});
beforeEach(async () => {
  server = new WireServer();
  const url = await server.start();
  const functions = {
    succeeds: (_: unknown, context: NodeContext) => ({
      n: 7,
      execution: context.node.execution,
      params: context.params,
    }),
    fails: () => {
      throw new Error('why');
    },
    hangs: (_: unknown, { signal, log }: NodeContext) => {
      log('ready');
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
    },
  };
  const runtimes = (): Runtime[] => [
    none,
    functionRuntime({ functions, graceMs: 300 }),
    processRuntime({ environment: process.env, graceMs: 300, lingerMs: 200 }),
    httpRuntime({ allowHttp: true, allowed: parseRanges(['127.0.0.1'], 'MILLRACE_HTTP') }),
  ];
  const timing = { heartbeatMs: 50, pollMs: 2_000, drainMs: 100 };
  worker = makeWorker({ id: newId(), name: 'test', version: '0', url, key: wireKey, runtimes, log: silent, ...timing });
  await worker.start();
});
afterEach(async () => {
  await worker?.stop();
  await server.stop();
});

async function reported(run: HeldRun): Promise<Report> {
  return await vi.waitFor(() => {
    const report = server.report(run);
    if (!report) throw new Error('not reported yet');
    return report;
  }, patience);
}

async function printed(run: HeldRun, text: string): Promise<void> {
  await vi.waitFor(() => expect(server.output(run)).toContain(text), patience);
}

const shell = (script: string): RuntimeBlock => ({
  kind: 'process',
  command: ['/bin/sh', '-c', script],
  env: {},
  cwd: null,
});
const named = (name: string): RuntimeBlock => ({ kind: 'function', name, input: null });
const http = (path: string, more: object = {}): RuntimeBlock => ({
  kind: 'http',
  method: 'POST',
  url: `${base}/${path}`,
  env: {},
  expect: null,
  ...more,
});

describe.each([
  [
    'process',
    () => shell(`printf '{"n":7}' > "$MILLRACE_RESULT"`),
    () => shell('echo why >&2; exit 3'),
    () => shell('echo ready; exec sleep 60'),
  ],
  ['function', () => named('succeeds'), () => named('fails'), () => named('hangs')],
  ['http', () => http('succeeds'), () => http('fails'), () => http('ready')],
] as const)('a node of kind %s', (_, succeeds, fails, hangs) => {
  it('that succeeds is reported with its result', async () => {
    const report = await reported(server.offerNode(succeeds(), '0_1'));
    expect(report).toMatchObject({ state: 'success' });
    expect(report.result).toMatch(/"n":7/);
  });

  it('that fails is reported with its reason', async () => {
    const report = await reported(server.offerNode(fails(), '0_1'));
    expect(report.state).toBe('failure');
    expect(report.reason).toMatch(/why|exit code 3/);
  });

  it('that is cancelled ends soon, and is reported as cancelled', async () => {
    const run = server.offerNode(hangs(), '0_1');
    await printed(run, 'ready');
    server.cancel.push({ tenant: run.tenant, run: run.run, lease: run.lease });
    server.wake();
    expect(await reported(run)).toMatchObject({ state: 'cancelled' });
  });

  it('that takes too long is ended, and reported as timeout', async () => {
    const run = server.offerNode(hangs(), '0_1', { timeoutMs: 500 });
    expect(await reported(run)).toMatchObject({ state: 'timeout' });
  });
});

it('a process of a node has variables about its node and params, and none about a task', async () => {
  const run = server.offerNode(shell('env'), '0_7', { params: { order: 7 }, attempt: 3 });
  await reported(run);
  const lines = server.output(run).trim().split('\n');
  const env = Object.fromEntries(
    lines.map((line): [string, string] => [line.split('=')[0] ?? '', line.replace(/^[^=]*=/, '')]),
  );
  expect(env).toMatchObject({
    MILLRACE_EXECUTION_ID: run.node.execution,
    MILLRACE_NODE_ID: '0_7',
    MILLRACE_NODE_NAME: 'ship',
    MILLRACE_RUN_ID: run.run,
    MILLRACE_ATTEMPT: '3',
    MILLRACE_PARAMS: '{"order":7}',
    MILLRACE_CREDENTIAL: '***',
  });
  for (const name of ['MILLRACE_TASK_NAME', 'MILLRACE_INSTANT', 'WATERWHEEL_JWT']) expect(env).not.toHaveProperty(name);
});

it('a function of a node gets the facts of its node', async () => {
  const run = server.offerNode(named('succeeds'), '0_7', { params: { order: 7 } });
  expect(JSON.parse((await reported(run)).result ?? '')).toEqual({
    n: 7,
    execution: run.node.execution,
    params: { order: 7 },
  });
});

it('a request of a node has headers from the stash, which its log hides, and a key that names the attempt', async () => {
  server.secrets.set('token', 'stashed value');
  const run = server.offerNode(http('succeeds', { env: { 'X-Token': { stash: 'token' } } }), '0_7', { attempt: 2 });
  expect(await reported(run)).toMatchObject({ state: 'success' });
  expect(asked).toMatchObject({
    'x-token': 'stashed value',
    'idempotency-key': `${run.node.execution}/0_7/2`,
  });
  expect(server.output(run)).toContain('> X-Token: ***');
  expect(server.output(run)).not.toContain('stashed');
});

it('a block that this worker cannot read fails its own run only', async () => {
  const bad = server.offerNode({ kind: 'http', method: 'BREW', url: base }, '0_1');
  const good = server.offerNode(http('succeeds'), '0_2');
  expect(await reported(bad)).toMatchObject({
    state: 'error',
    reason: expect.stringContaining('its "http" block is not valid') as string,
  });
  expect(await reported(good)).toMatchObject({ state: 'success' });
});
