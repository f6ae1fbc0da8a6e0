import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { wireKey, WireServer } from '../../test/conformance/wire-server.ts';
import type { HeldRun, Report, RuntimeBlock } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import { isProcessRunning } from '../kernel/process/process-stat.ts';
import type { Service } from '../kernel/service.ts';
import type { Runtime } from '../runtimes/contract.ts';
import { functionRuntime, type TaskFunctions } from '../runtimes/function/function.ts';
import { none } from '../runtimes/none/runtime.ts';
import { processRuntime } from '../runtimes/process/process.ts';
import type { WorkerOptions } from './settings.ts';
import { makeWorker } from './worker.ts';

const patience = { timeout: 25_000, interval: 5 };
const workers: Service[] = [];
let server = new WireServer();
let url = '';

beforeEach(async () => {
  server = new WireServer();
  url = await server.start();
});
afterEach(async () => {
  server.outOfOrder = undefined;
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await server.stop();
});

async function startWorker(options: Partial<WorkerOptions> = {}, functions: TaskFunctions = {}): Promise<Service> {
  const runtimes = (): Runtime[] => [
    none,
    functionRuntime({ functions, graceMs: 300 }),
    processRuntime({ environment: process.env, graceMs: 300, lingerMs: 200 }),
  ];
  const timing = { heartbeatMs: 50, pollMs: 2_000, drainMs: 100 };
  const self = { id: newId(), name: 'test', version: '0', url, key: wireKey, runtimes, log: silent };
  const worker = makeWorker({ ...self, ...timing, ...options });
  workers.push(worker);
  await worker.start();
  return worker;
}

const shell = (script: string, env: RuntimeBlock['env'] = {}): RuntimeBlock => ({
  kind: 'process',
  command: ['/bin/sh', '-c', script],
  env,
  cwd: null,
});

async function reported(run: HeldRun): Promise<Report> {
  return await vi.waitFor(() => {
    const report = server.report(run);
    if (!report) throw new Error('not reported yet');
    return report;
  }, patience);
}

function expectReason(report: Report, state: Report['state'], part: string): void {
  expect(report.state).toBe(state);
  expect(report.reason).toContain(part);
}

async function printed(run: HeldRun, text: string): Promise<void> {
  await vi.waitFor(() => expect(server.output(run)).toContain(text), patience);
}

describe('runs', () => {
  it('a run of each runtime is claimed, executed and reported with its lease', async () => {
    await startWorker({}, { f: () => 1 });
    const runs = [
      server.offer(server.define({ kind: 'none' }), { lease: 3 }),
      server.offer(server.define({ kind: 'function', name: 'f', input: null })),
      server.offer(server.define(shell('exit 0'))),
      server.offer(server.define(shell('exit 5'))),
    ];
    const reports = await Promise.all(runs.map(reported));
    expect(reports.map((report) => [report.state, report.exit_code])).toEqual([
      ['success', null],
      ['success', null],
      ['success', 0],
      ['failure', 5],
    ]);
    expect(reports.every((report) => report.started_at !== null)).toBe(true);
  });

  it('a run of a node is executed without a definition, and its result is reported', async () => {
    await startWorker();
    const script = `echo "$MILLRACE_NODE_ID"; printf '{"n":1}' > "$MILLRACE_RESULT"`;
    const run = server.offerNode(shell(script), '0_7');
    expect(await reported(run)).toMatchObject({ state: 'success', result: '{"n":1}' });
    expect(server.output(run)).toBe('0_7\n');
    expect(server.served).not.toContain('definitions');
    expect(server.polls.every((poll) => poll.wire === 2)).toBe(true);
  });

  it('the output of a run is sent in order and completely before its report', async () => {
    await startWorker();
    const script = 'i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done';
    const run = server.offer(server.define(shell(script)));
    await reported(run);
    const lines = Array.from({ length: 2_000 }, (_, i) => `line ${i}\n`).join('');
    expect(server.output(run)).toBe(lines);
    expect(server.served.lastIndexOf('logs')).toBeLessThan(server.served.indexOf('report'));
    const numbers = server.chunks.map((chunk) => chunk.number);
    expect(numbers).toEqual(numbers.map((_, i) => i));
  });

  it('the output of a run is sent while it runs', async () => {
    await startWorker();
    const run = server.offer(server.define(shell('echo early; exec sleep 60')));
    await printed(run, 'early');
    expect(server.report(run)).toBeUndefined();
  });

  it('a task has variables about its run under our names and those of Waterwheel', async () => {
    await startWorker({ taskUrl: 'http://tasks.example' });
    const definition = server.define(shell('env', { GIVEN: 'at {{ instant }} with {{params.x}}' }));
    const run = server.offer(definition, { params: { x: 'y' }, attempt: 2 });
    await reported(run);
    const lines = server.output(run).trim().split('\n');
    const env = Object.fromEntries(
      lines.map((line): [string, string] => [line.split('=')[0] ?? '', line.replace(/^[^=]*=/, '')]),
    );
    expect(env).toMatchObject({
      GIVEN: 'at 2026-01-02T03:04:05.000Z with y',
      MILLRACE_RUN_ID: run.run,
      MILLRACE_IDEMPOTENCY_KEY: run.run,
      MILLRACE_ATTEMPT: '2',
      MILLRACE_PARAMS: '{"x":"y"}',
      MILLRACE_URL: 'http://tasks.example',
      MILLRACE_CREDENTIAL: '***',
      MILLRACE_TENANT: 'default',
      WATERWHEEL_TRIGGER_DATETIME: '2026-01-02T03:04:05Z',
      WATERWHEEL_TASK_NAME: 'task',
      WATERWHEEL_JOB_ID: definition.job.id,
      WATERWHEEL_PROJECT_NAME: 'project',
      WATERWHEEL_SERVER_ADDR: 'http://tasks.example/',
      WATERWHEEL_JWT: '***',
    });
    expect(Object.keys(env)).not.toContain('VITEST');
  });

  it('a task gets stash values, which are masked in its output and its reason', async () => {
    server.secrets.set('password', 'sesame-open\n');
    await startWorker();
    const script =
      'printf "pw=ses"; sleep 0.2; printf "ame-"; sleep 0.2; echo "open"; [ "$PW" = "sesame-open" ] || [ -n "$PW" ]';
    const run = server.offer(server.define(shell(script, { PW: { stash: 'password' } })));
    expect(await reported(run)).toMatchObject({ state: 'success' });
    expect(server.output(run)).toBe('pw=***\n');
  });

  it('a missing template value, stash entry or definition is an error that names it', async () => {
    await startWorker();
    const template = server.offer(server.define(shell('echo {{nothing}}')));
    const stash = server.offer(server.define(shell('true', { PW: { stash: 'absent' } })));
    const gone = server.define({ kind: 'none' });
    server.forget(gone);
    const undefinedRun = server.offer(gone);
    expectReason(await reported(template), 'error', '{{nothing}}');
    expectReason(await reported(stash), 'error', '"absent"');
    expectReason(await reported(undefinedRun), 'error', gone.task);
  });

  it('the output of a run that prints without end is cut, keeps its end, and does not grow the worker', async () => {
    await startWorker({ logLimitBytes: 100_000 });
    const before = process.memoryUsage.rss();
    const run = server.offer(server.define(shell('head -c 200000000 /dev/zero; echo; echo the end')));
    expect(await reported(run)).toMatchObject({ state: 'success' });
    const output = server.output(run);
    expect(output.length).toBeLessThan(200_000);
    expect(output).toContain('limit of 100000 bytes');
    expect(output.endsWith('\0\nthe end\n')).toBe(true);
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024);
  });
});

describe('kills', () => {
  const stubborn = 'trap "" TERM; echo pid $$; while :; do sleep 0.05; done';

  async function pidOf(run: HeldRun): Promise<number> {
    await printed(run, 'pid ');
    return Number(/pid (\d+)/.exec(server.output(run))?.[1]);
  }

  it('a run is killed when its time is over, and reported as timeout', async () => {
    await startWorker();
    const run = server.offer(server.define(shell(stubborn), 3_000));
    const pid = await pidOf(run);
    expectReason(await reported(run), 'timeout', '3s');
    expect(isProcessRunning(pid)).toBe(false);
  });

  it('a cancelled run is killed with the next answer of any kind, and reported as cancelled', async () => {
    await startWorker({ heartbeatMs: 60_000 });
    const run = server.offer(server.define(shell('echo pid $$; exec sleep 60')));
    const pid = await pidOf(run);
    server.cancel.push({ tenant: run.tenant, run: run.run, lease: run.lease });
    server.wake();
    expect(await reported(run)).toMatchObject({ state: 'cancelled' });
    expect(isProcessRunning(pid)).toBe(false);
  });

  it('the poll of a worker without a free place kills a cancelled run', async () => {
    await startWorker({ heartbeatMs: 60_000, maxTasks: 1 });
    const run = server.offer(server.define(shell('echo pid $$; exec sleep 60')));
    await pidOf(run);
    await vi.waitFor(() => expect(server.polls.at(-1)?.free).toBe(0), patience);
    server.cancel.push({ tenant: run.tenant, run: run.run, lease: run.lease });
    server.wake();
    expect(await reported(run)).toMatchObject({ state: 'cancelled' });
  });

  it('a run whose lease is lost is killed without a report, and no longer held', async () => {
    await startWorker();
    const run = server.offer(server.define(shell(stubborn)));
    const pid = await pidOf(run);
    server.lost.push({ tenant: run.tenant, run: run.run, lease: run.lease });
    await vi.waitFor(() => expect(isProcessRunning(pid)).toBe(false), patience);
    await vi.waitFor(() => expect(server.heartbeats.at(-1)?.holds).toEqual([]), patience);
    expect(server.report(run)).toBeUndefined();
  });

  it('a signal for another lease does not kill a run', async () => {
    await startWorker();
    const run = server.offer(server.define(shell('echo pid $$; sleep 0.3')), { lease: 2 });
    await pidOf(run);
    server.lost.push({ tenant: run.tenant, run: run.run, lease: 1 });
    expect(await reported(run)).toMatchObject({ state: 'success', lease: 2 });
  });
});

describe('workers', () => {
  it('a worker never takes more runs than it has places, and fills them in one poll', async () => {
    const gate = makeGate();
    let running = 0;
    let most = 0;
    const wait = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await gate.opened;
      running--;
    };
    const definition = server.define({ kind: 'function', name: 'wait', input: null });
    const runs = Array.from({ length: 10 }, () => server.offer(definition));
    await startWorker({ maxTasks: 4 }, { wait });
    await vi.waitFor(() => expect(running).toBe(4), patience);
    expect(server.polls.find((poll) => poll.runtimes.includes('function'))?.free).toBe(4);
    gate.open();
    await Promise.all(runs.map(reported));
    expect(most).toBe(4);
  });

  it('a worker without a free place takes many runs that execute nothing', async () => {
    const gate = makeGate();
    await startWorker({ maxTasks: 1 }, { wait: () => gate.opened });
    const waiting = server.offer(server.define({ kind: 'function', name: 'wait', input: null }));
    await vi.waitFor(() => expect(server.heartbeats.at(-1)?.holds).toHaveLength(1), patience);
    const definition = server.define({ kind: 'none' });
    const polls = server.polls.length;
    const runs = Array.from({ length: 500 }, () => server.offer(definition));
    for (const report of await Promise.all(runs.map(reported))) expect(report.state).toBe('success');
    expect(server.polls.length - polls).toBeLessThan(20);
    expect(server.report(waiting)).toBeUndefined();
    gate.open();
    await reported(waiting);
  });

  it('heartbeats list a run from the claim until the report is acknowledged', async () => {
    const gate = makeGate();
    await startWorker({}, { wait: () => gate.opened });
    const run = server.offer(server.define({ kind: 'function', name: 'wait', input: null }));
    const held = [{ tenant: run.tenant, run: run.run, lease: run.lease }];
    await vi.waitFor(() => expect(server.heartbeats.at(-1)?.holds).toEqual(held), patience);
    gate.open();
    await reported(run);
    await vi.waitFor(() => expect(server.heartbeats.at(-1)?.holds).toEqual([]), patience);
  });

  it('tasks continue during an outage, and their output and results arrive once afterwards', async () => {
    const gate = makeGate();
    await startWorker({}, { wait: async (_, { log }) => (await gate.opened, log('printed in the outage')) });
    const definition = server.define({ kind: 'function', name: 'wait', input: null });
    const runs = [server.offer(definition), server.offer(definition)];
    await vi.waitFor(() => expect(server.heartbeats.at(-1)?.holds).toHaveLength(2), patience);
    const refused = (name: string): number => server.refused.filter((each) => each === name).length;
    for (const status of [0, 503]) {
      server.outOfOrder = status;
      gate.open();
      const before = [refused('logs'), refused('heartbeat')];
      await vi.waitFor(() => expect(refused('logs')).toBeGreaterThan(before[0] ?? 0), patience);
      await vi.waitFor(() => expect(refused('heartbeat')).toBeGreaterThan(before[1] ?? 0), patience);
    }
    const beats = server.heartbeats.length;
    expect(server.reports).toEqual([]);
    server.outOfOrder = undefined;
    for (const report of await Promise.all(runs.map(reported))) expect(report.state).toBe('success');
    for (const run of runs) expect(server.output(run)).toBe('printed in the outage\n');
    expect(server.reports).toHaveLength(2);
    await vi.waitFor(() => expect(server.heartbeats.length).toBeGreaterThan(beats), patience);
  });

  it('a worker waits for an API that is not reachable yet', async () => {
    server.outOfOrder = 0;
    const run = server.offer(server.define({ kind: 'none' }));
    await startWorker();
    await vi.waitFor(() => expect(server.refused.length).toBeGreaterThan(2), patience);
    server.outOfOrder = undefined;
    expect(await reported(run)).toMatchObject({ state: 'success' });
  });

  it('a definition is fetched once, and again after an invalidation', async () => {
    await startWorker();
    const definition = server.define({ kind: 'none' });
    const fetched = (): number => server.served.filter((name) => name === 'definitions').length;
    await reported(server.offer(definition));
    await reported(server.offer(definition));
    expect(fetched()).toBe(1);
    server.invalidate.push({ tenant: definition.tenant, kind: 'task', id: definition.task });
    await vi.waitFor(() => expect(server.heartbeats.at(-1)?.seen).toEqual({ [server.epoch]: 1 }), patience);
    await reported(server.offer(definition));
    expect(fetched()).toBe(2);
  });

  it('a stopping worker waits a while for tasks, returns the others, and reports that it holds nothing', async () => {
    const worker = await startWorker({ drainMs: 2_000 });
    const quick = server.offer(server.define(shell('echo here; sleep 0.3; echo there')));
    await printed(quick, 'here');
    await worker.stop();
    expect(server.report(quick)).toMatchObject({ state: 'success' });
    expect(server.output(quick)).toBe('here\nthere\n');

    const again = await startWorker({ drainMs: 50 });
    const slow = server.offer(server.define(shell('trap "" TERM; echo here; while :; do sleep 0.05; done')));
    const obstinate = server.offer(server.define({ kind: 'function', name: 'x', input: 1 }));
    await printed(slow, 'here');
    await reported(obstinate);
    await again.stop();
    expect(server.report(slow)).toMatchObject({ state: 'returned' });
    expect(server.heartbeats.at(-1)?.holds).toEqual([]);
  });

  it('a stopping worker returns runs that its last poll receives', async () => {
    const worker = await startWorker({ drainMs: 3_000 });
    const running = server.offer(server.define(shell('echo here; sleep 0.5')));
    await printed(running, 'here');
    const stopped = worker.stop();
    const late = server.offer(server.define(shell('echo never')));
    await stopped;
    expect(server.report(running)).toMatchObject({ state: 'success' });
    expect(server.report(late)).toMatchObject({ state: 'returned', started_at: null });
  });

  it('a worker stops in limited time when the API is gone, tasks ignore signals and output is waiting', async () => {
    const worker = await startWorker({ drainMs: 50 }, { stuck: () => new Promise(() => {}) });
    const run = server.offer(server.define(shell('trap "" TERM; echo here; while :; do echo more; sleep 0.01; done')));
    server.offer(server.define({ kind: 'function', name: 'stuck', input: null }));
    await printed(run, 'here');
    server.outOfOrder = 0;
    const stoppedAt = performance.now();
    await worker.stop();
    // design §7
    expect(performance.now() - stoppedAt).toBeLessThan(8_000);
  });

  it('a worker can be stopped and started again, as a newer incarnation, with repeated calls', async () => {
    const worker = await startWorker();
    await vi.waitFor(() => expect(server.heartbeats.length).toBeGreaterThan(0), patience);
    const first = server.heartbeats.at(-1)?.incarnation ?? Infinity;
    await Promise.all([worker.stop(), worker.stop()]);
    await Promise.all([worker.start(), worker.start()]);
    const run = server.offer(server.define({ kind: 'none' }));
    await reported(run);
    expect(server.heartbeats.at(-1)?.incarnation).toBeGreaterThanOrEqual(first);
  });

  it('fifty starts and stops of a worker leave nothing behind', async () => {
    const worker = await startWorker();
    for (let i = 0; i < 50; i++) {
      await worker.stop();
      await worker.start();
    }
    await reported(server.offer(server.define({ kind: 'none' })));
  });
});

function makeGate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
