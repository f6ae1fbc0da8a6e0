/** Tasks of flows on the built product: every kind of work, answers by link, cancellation, workers that die, and late answers. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CallAnswer } from '../../src/http/client.ts';
import { isProcessRunning } from '../../src/kernel/process/process-stat.ts';
import { endOf, logOf, runTask, waitForOutput } from '../harness/one-task.ts';
import { type Endpoints, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../harness/worker-process.ts';

type Seen = CallAnswer<Endpoints['GET /api/executions/{id}']>;

let product: Product;
const workers: WorkerProcess[] = [];
const outbound = { MILLRACE_HTTP_ALLOW_HTTP: 'true', MILLRACE_HTTP_ALLOW_CIDRS: '127.0.0.0/8' };

/** What was sent to the receiver, by path. */
const got: { readonly url: string; readonly headers: IncomingMessage['headers']; readonly body: string }[] = [];
const receiver = createServer((incoming, answer) => void receive(incoming, answer));
const receiverUrl = (): string => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;

async function receive(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { url = '', headers } = incoming;
  got.push({ url, headers, body: Buffer.concat(chunks).toString() });
  if (url.startsWith('/fail')) answer.writeHead(503).end('later');
  else answer.writeHead(200, { 'content-type': 'application/json' }).end('{"taken":true}');
}

beforeAll(async () => {
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  // short, so that the runs of a dead worker come back soon
  product = await startProduct({ env: { MILLRACE_LEASE: '6s', ...outbound } });
  await product.call('PUT /api/stash/{key}', { params: { key: 'token' }, body: Buffer.from('stashed value') });
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.end('SIGKILL')));
});
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await product.stop();
  await removeHome(product.home);
});

const shell = (script: string, more: object = {}) => ({ process: { command: ['sh', '-c', script], ...more } });
const read = (id: string): Promise<Seen> => product.call('GET /api/executions/{id}', { params: { id } });

async function launch(flow: string, steps: readonly unknown[], input: object = {}): Promise<string> {
  await product.call('POST /api/flows', { body: JSON.stringify({ flow, steps }) });
  return (await product.call('POST /api/executions', { body: { flow, input } })).id;
}

function reached(id: string, status: string): Promise<Seen> {
  return until(
    `execution ${id} is ${status}`,
    async () => {
      const seen = await read(id);
      return seen.status === status ? seen : undefined;
    },
    120_000,
  );
}

/** The run that performs the only task of an execution. */
function runOf(id: string): Promise<string> {
  return until(
    'a run performs the task',
    async () => (await read(id)).nodes.find(({ run }) => run !== null)?.run ?? undefined,
  );
}

async function worker(...args: string[]): Promise<WorkerProcess> {
  const started = await startWorkerProcess(product, { args, env: outbound });
  workers.push(started);
  return started;
}

describe('work', () => {
  it('a process gets params and variables, and its result goes to the flow', async () => {
    const script = `printf '{"node":"%s","params":%s}' "$MILLRACE_NODE_NAME" "$MILLRACE_PARAMS" > "$MILLRACE_RESULT"`;
    const id = await launch(
      'processes',
      [{ task: 'pack', with: { n: '$(f.n)' }, ...shell(script), result: 'f.made' }],
      {
        n: 7,
      },
    );
    expect((await reached(id, 'done')).fields['made']).toEqual({ node: 'pack', params: { n: 7 } });
  });

  it('a process may send its result by itself', async () => {
    const program = `fetch(process.env.MILLRACE_URL + '/api/runs/' + process.env.MILLRACE_RUN_ID + '/result', {
      method: 'PUT', body: '[1,2]', headers: { authorization: 'Bearer ' + process.env.MILLRACE_CREDENTIAL } })
      .then((answer) => process.exit(answer.status === 204 ? 0 : 1))`;
    const process = { command: [globalThis.process.execPath, '-e', program] };
    const id = await launch('sent-results', [{ task: 'send', process, result: 'f.sent' }]);
    expect((await reached(id, 'done')).fields['sent']).toEqual([1, 2]);
  });

  it('a process that fails is an incident, and `retry` starts another run', async () => {
    const mark = join(product.taskFolder, 'failed-once');
    const id = await launch('failures', [{ task: 'try', ...shell(`[ -e ${mark} ] || { : > ${mark}; exit 3; }`) }]);
    const [incident] = (await reached(id, 'incident')).incidents;
    expect(incident).toMatchObject({ code: 'failure', message: expect.stringContaining('3') as string });
    await product.call('POST /api/executions/{id}/nodes/{node}/retry', { params: { id, node: incident?.node ?? '' } });
    await reached(id, 'done');
  });

  it('a function of a worker gets the facts of its node, and returns the result', async () => {
    const file = join(product.taskFolder, 'functions.mjs');
    await writeFile(file, 'export const add = ({ a, b }, { node }) => ({ sum: a + b, node: node.name });');
    await worker('--functions', file, '--queue', 'functions');
    const step = { task: 'sum', function: { name: 'add', input: { a: '$(f.a)', b: 2 } }, queue: 'functions' };
    const id = await launch('functions', [{ ...step, result: 'f.made' }], { a: 1 });
    expect((await reached(id, 'done')).fields['made']).toEqual({ sum: 3, node: 'sum' });
  });

  it('a request has its headers from the stash, and its answer is the result; another status is a failure', async () => {
    const http = {
      url: `${receiverUrl()}/orders`,
      headers: { 'X-Token': { stash: 'token' } },
      body: { id: '$(f.id)' },
    };
    const fail = {
      task: 'fail',
      http: { url: `${receiverUrl()}/fail` },
      on_error: [{ set: { 'f.why': '$(err.message)' } }],
    };
    const id = await launch('requests', [{ task: 'order', http, result: 'f.answer' }, fail], { id: 'o1' });
    const { fields } = await reached(id, 'done');
    expect(fields).toMatchObject({ answer: { status: 200, body: { taken: true } } });
    expect(fields['why']).toBe('the answer was 503 Service Unavailable: later');
    const sent = got.find(({ url }) => url === '/orders');
    expect(sent).toMatchObject({ body: '{"id":"o1"}', headers: { 'x-token': 'stashed value' } });
    expect(sent?.headers['idempotency-key']).toMatch(new RegExp(`^${id}/0_0-\\d+/1$`));
  });

  it('a task of a job sends requests, too', async () => {
    const http = { url: `${receiverUrl()}/job/{{params.day}}`, body: { run: '{{run}}' } };
    const { id, state, text } = await runTask(product, { http }, { day: 'monday' });
    expect(state).toBe('success');
    const sent = got.find(({ url }) => url === '/job/monday');
    expect(sent).toMatchObject({ body: JSON.stringify({ run: id }), headers: { 'idempotency-key': id } });
    expect(text).toContain('< 200 OK');
    expect((await endOf(product, id)).result).toMatchObject({ status: 200, body: { taken: true } });
  });
});

describe('answers by link', () => {
  const json = { 'content-type': 'application/json' };

  it('a request with a callback waits for the answer that comes by its link', async () => {
    const http = { url: `${receiverUrl()}/pay`, callback: '1h' };
    const id = await launch('callbacks', [{ task: 'charge', http, result: 'f.paid' }]);
    const run = await runOf(id);
    expect(await endOf(product, run)).toMatchObject({ state: 'success', node: { execution: id, name: 'charge' } });
    const link = String(got.find(({ url }) => url === '/pay')?.headers['millrace-answer-url']);
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/answers\/mra_/);
    expect((await logOf(product, run)).toString()).not.toContain(link.slice(-20));
    expect((await read(id)).status).not.toBe('done');
    expect((await fetch(link)).status).toBe(200);
    const answer = await fetch(link, { method: 'POST', headers: json, body: '{"receipt":7}' });
    expect([answer.status, await answer.json()]).toEqual([200, { outcome: 'committed' }]);
    expect((await reached(id, 'done')).fields['paid']).toEqual({ receipt: 7 });
    expect((await fetch(link)).status).toBe(410);
    expect((await fetch(link, { method: 'POST', headers: json, body: '1' })).status).toBe(410);
  });

  it('a person answers by the link that another task has sent', async () => {
    const human = { assignee: 'meg', title: 'Expense $(f.id)', form: { approved: 'boolean', comment: 'text' } };
    const tell = { task: 'tell', http: { url: `${receiverUrl()}/mail`, body: { link: '$(links.approve)' } } };
    const approve = { task: 'approve', human, timeout: '7d', result: 'f.decision' };
    const id = await launch('approvals', [{ parallel: [approve, tell] }], { id: 'e1' });
    const link = await until('the link is sent', () => {
      const mail = got.find(({ url }) => url === '/mail');
      return mail && (JSON.parse(mail.body) as { link: string }).link;
    });
    const shown = await fetch(link);
    expect(shown.headers.get('cache-control')).toBe('no-store');
    expect(await shown.json()).toMatchObject({ title: 'Expense e1', flow: 'approvals', name: 'approve' });
    const page = await fetch(link, { headers: { accept: 'text/html' } });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const wrong = await fetch(link, { method: 'POST', headers: json, body: '{"approved":"yes"}' });
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { faults: [{ path: 'body.approved' }] }]);
    const foreign = { ...json, origin: 'https://evil.example' };
    expect((await fetch(link, { method: 'POST', headers: foreign, body: '{"approved":true}' })).status).toBe(403);
    expect((await fetch(link, { method: 'POST', headers: json, body: '{"approved":true}' })).status).toBe(200);
    expect((await reached(id, 'done')).fields['decision']).toEqual({ approved: true });
    expect((await fetch(link)).status).toBe(410);
    expect((await fetch(link.replace(/.{20}$/, 'x'.repeat(20)))).status).toBe(404);
    expect(product.output()).not.toContain(link.slice(-20));
  });

  it('the link of a step that was cancelled is spent', async () => {
    const http = { url: `${receiverUrl()}/cancelled`, callback: '1h' };
    const id = await launch('cancelled-callbacks', [{ task: 'charge', http }]);
    await endOf(product, await runOf(id));
    const link = String(got.find(({ url }) => url === '/cancelled')?.headers['millrace-answer-url']);
    await product.call('POST /api/executions/{id}/cancel', { params: { id } });
    // nobody has to say that it has stopped
    await reached(id, 'cancelled');
    expect((await fetch(link, { method: 'POST', headers: json, body: '1' })).status).toBe(410);
  });
});

describe('ends', () => {
  const hang = 'echo pid $$; exec sleep 600';
  const pidOf = async (run: string): Promise<number> => Number(await waitForOutput(product, run, /pid (\d+)/));

  it('cancelling an execution kills its process, and ends the execution when that has stopped', async () => {
    const id = await launch('cancels', [{ task: 'hang', ...shell(hang), on_cancel: [{ set: { 'f.told': true } }] }]);
    const run = await runOf(id);
    const pid = await pidOf(run);
    await product.call('POST /api/executions/{id}/cancel', { params: { id } });
    const seen = await reached(id, 'cancelled');
    expect(isProcessRunning(pid)).toBe(false);
    expect(seen.fields['told']).toBe(true);
    expect(await endOf(product, run)).toMatchObject({ state: 'cancelled', reason: 'cancelled by its execution' });
  });

  it('a queued run ends at once when its step is cancelled', async () => {
    const id = await launch('queued-cancels', [{ task: 'wait', ...shell('true'), queue: 'nobody' }]);
    const run = await runOf(id);
    await product.call('POST /api/executions/{id}/cancel', { params: { id } });
    await reached(id, 'cancelled');
    expect(await endOf(product, run)).toMatchObject({ state: 'cancelled', started_at: null });
  });

  it('the timeout of a step kills its process', async () => {
    const id = await launch('timeouts', [
      { task: 'hang', ...shell(hang), timeout: '3s', on_timeout: [{ set: { 'f.late': true } }] },
    ]);
    const run = await runOf(id);
    const pid = await pidOf(run);
    expect((await reached(id, 'done')).fields['late']).toBe(true);
    expect(isProcessRunning(pid)).toBe(false);
    expect((await endOf(product, run)).state).not.toBe('success');
  });

  it('a run whose worker was killed comes back, and its result goes to the flow', async () => {
    const mark = join(product.taskFolder, 'first-worker');
    const first = await worker('--queue', 'far', '--name', 'first');
    const script = `echo pid $$; [ -e ${mark} ] && { printf '"second"' > "$MILLRACE_RESULT"; exit 0; }; : > ${mark}; exec sleep 600`;
    const id = await launch('lost-workers', [{ task: 'twice', ...shell(script), queue: 'far', result: 'f.by' }]);
    const run = await runOf(id);
    await until('the first worker has begun', () => existsSync(mark) || undefined);
    await first.end('SIGKILL');
    await worker('--queue', 'far', '--name', 'second');
    expect((await reached(id, 'done')).fields['by']).toBe('second');
    // the same run under another lease: no attempt of the step is spent
    expect(await endOf(product, run)).toMatchObject({ state: 'success', lease: 2, attempt: 1 });
  });

  it('an answer that comes after its step has ended is recorded, and has no effect', async () => {
    const script = `trap 'printf late > ${product.taskFolder}/late; exit 7' TERM; echo pid $$; while :; do sleep 0.1; done`;
    const steps = [{ task: 'slow', ...shell(script), result: 'f.made' }, { wait: { on: { signal: 'end' } } }];
    const id = await launch('late-answers', steps);
    const run = await runOf(id);
    await pidOf(run);
    const node = (await read(id)).nodes.find((each) => each.run === run);
    const params = { id, node: node?.id ?? '' };
    await product.call('POST /api/executions/{id}/nodes/{node}/skip', { params, body: { result: 'by hand' } });
    expect(await endOf(product, run)).toMatchObject({ state: 'cancelled', reason: 'cancelled by its execution' });
    expect(existsSync(join(product.taskFolder, 'late'))).toBe(true);
    await product.call('POST /api/executions/{id}/signals', { params: { id }, body: { name: 'end' } });
    expect((await reached(id, 'done')).fields['made']).toBe('by hand');
  });
});
