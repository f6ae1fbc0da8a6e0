/** The conformance suite of every runtime that can run here: the promises of `src/runtimes/contract.ts`. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parseRanges } from '../../src/outbound/addresses.ts';
import type { KillReason, Outcome, Runtime, Work } from '../../src/runtimes/contract.ts';
import { functionRuntime } from '../../src/runtimes/function/function.ts';
import { functionProcesses } from '../../src/runtimes/function/processes.ts';
import { httpRuntime } from '../../src/runtimes/http/http.ts';
import { none } from '../../src/runtimes/none/runtime.ts';
import { processRuntime } from '../../src/runtimes/process/process.ts';
import { dockerRuntime } from '../../src/runtimes/docker/docker.ts';
import { bundleModule } from '../harness/bundled.ts';
import { type EngineProcess, startDocker, startPodman } from '../harness/containers/engine-process.ts';
import { testImage } from '../harness/containers/test-image.ts';
import { needs } from '../harness/services.ts';
import { makeTask, Recorder } from './task.ts';

type Act = 'succeeds' | 'fails' | 'prints' | 'obeys' | 'ignores' | 'removed';
interface Started {
  readonly runtime: Runtime;
  readonly stop?: () => Promise<void>;
  /** Ends all tasks without the runtime, as an operator may do. */
  readonly endTasks?: () => Promise<void>;
}
interface Subject {
  readonly title: string;
  readonly graceMs?: number;
  readonly start: () => Promise<Started>;
  /** Work that does the thing; a runtime that cannot do it has none. */
  readonly works: Partial<Record<Act, Work>>;
}

// long enough that a busy machine does not take an obedient task for a stubborn one
const usualGraceMs = 1_000;
/** podman needs most of a second to report the end of a container on an idle machine. */
const containerGraceMs = 3_000;
const shell = (script: string): Work => ({ kind: 'process', command: ['/bin/sh', '-c', script], cwd: null });
const named = (name: string): Work => ({ kind: 'function', name, input: null });
const acts = ['succeeds', 'fails', 'prints', 'obeys', 'ignores'] as const;
const functionWorks = Object.fromEntries(acts.map((act) => [act, named(act)]));

const folder = await mkdtemp(join(tmpdir(), 'millrace-conformance-'));
const program = await bundleModule('runtimes/function/host.ts');
const reaper = await bundleModule('runtimes/docker/container-reaper.ts');
const file = join(folder, 'functions.mjs');
await writeFile(
  file,
  `export const succeeds = () => 1;
   export const fails = () => { throw new Error('why'); };
   export const prints = (_, { log }) => { log('first'); console.log('second'); };
   export const obeys = (_, { log, signal }) => new Promise((_resolve, reject) => {
     signal.addEventListener('abort', () => reject(new Error('stopped')));
     log('ready');
   });
   export const ignores = (_, { log }) => { log('ready'); for (;;); };`,
);
afterAll(async () => {
  for (const made of [folder, dirname(program), dirname(reaper)]) await rm(made, { recursive: true });
});

const receiver = createServer((incoming, answer) => {
  if (incoming.url === '/fails') answer.writeHead(500, 'why').end();
  else if (incoming.url === '/succeeds') answer.end('done');
});
await once(receiver.listen(0, '127.0.0.1'), 'listening');
afterAll(() => {
  receiver.closeAllConnections();
  receiver.close();
});
const sent = (path: string): Work => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/${path}`;
  return { kind: 'http', method: 'POST', url, headers: [], expect: null, answerUrl: null };
};

const ready = (runtime: Runtime) => async (): Promise<Started> => ({ runtime });

const subjects: Subject[] = [
  {
    title: 'http',
    start: ready(httpRuntime({ allowHttp: true, allowed: parseRanges(['127.0.0.1'], 'MILLRACE_HTTP') })),
    works: { succeeds: sent('succeeds'), fails: sent('fails'), obeys: sent('ready') },
  },
  { title: 'none', start: ready(none), works: { succeeds: { kind: 'none' } } },
  {
    title: 'process',
    start: ready(processRuntime({ environment: process.env, graceMs: usualGraceMs })),
    works: {
      succeeds: shell('exit 0'),
      fails: shell('echo why >&2; exit 3'),
      prints: shell('echo first; echo second'),
      obeys: shell('echo ready; exec sleep 60'),
      ignores: shell('trap "" TERM; echo ready; while :; do sleep 0.05; done'),
    },
  },
  {
    title: 'function, in the own process',
    start: ready(
      functionRuntime({
        graceMs: usualGraceMs,
        functions: {
          succeeds: () => 1,
          fails: () => {
            throw new Error('why');
          },
          prints: (_, { log }) => ['first', 'second'].forEach((line) => log(line)),
          obeys: (_, { log, signal }) => {
            log('ready');
            return new Promise((_resolve, reject) =>
              signal.addEventListener('abort', () => reject(new Error('stopped'))),
            );
          },
          ignores: (_, { log }) => {
            log('ready');
            return new Promise(() => {});
          },
        },
      }),
    ),
    works: functionWorks,
  },
  {
    title: 'function, of a file',
    start: ready(functionProcesses({ file, program, environment: process.env, graceMs: usualGraceMs })),
    works: functionWorks,
  },
  ...(needs('docker') && needs('busybox') ? [containers('docker', startDocker)] : []),
  ...(needs('podman') && needs('busybox') ? [containers('docker, with podman', startPodman)] : []),
];

/** An engine starts only if the tests of its runtime run. */
function containers(title: string, engine: () => Promise<EngineProcess>): Subject {
  const shellIn = (script: string): Work => ({
    kind: 'docker',
    image: testImage,
    args: ['sh', '-c', script],
    pull: 'missing',
    volumes: [],
  });
  return {
    title,
    graceMs: containerGraceMs,
    async start() {
      const { host, stop, containers: names, docker } = await engine();
      const endTasks = async (): Promise<void> => void (await docker('rm', '-f', ...(await names())));
      const runtime = dockerRuntime({
        host,
        environment: process.env,
        networks: ['none'],
        reaper,
        times: { graceMs: containerGraceMs },
        worker: () => ({ worker: 'conformance', incarnation: 1 }),
      });
      return { runtime, stop, endTasks };
    },
    works: {
      succeeds: shellIn('exit 0'),
      fails: shellIn('echo why >&2; exit 3'),
      prints: shellIn('echo first; echo second'),
      // podman has no init program here, so the script is the first process and must obey by itself
      obeys: shellIn('trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done'),
      ignores: shellIn('trap "" TERM; echo ready; while :; do sleep 0.05; done'),
      removed: shellIn('echo ready; exec sleep 60'),
    },
  };
}

describe.each(subjects)('the runtime $title', ({ start, works, graceMs = usualGraceMs }) => {
  let runtime: Runtime;
  let stop: Started['stop'];
  let endTasks: Started['endTasks'];
  beforeAll(async () => {
    ({ runtime, stop, endTasks } = await start());
    await runtime.service?.start();
  });
  afterAll(async () => {
    await runtime.service?.stop();
    await stop?.();
  });

  /** A test for runtimes whose tasks can do that. */
  const when = (act: Act, title: string, test: (work: Work) => Promise<void>): void => {
    const work = works[act];
    if (work) it(title, () => test(work));
  };
  const never = new AbortController().signal;

  async function killed(work: Work, reason: KillReason): Promise<{ outcome: Outcome; ms: number }> {
    const control = new AbortController();
    const output = new Recorder();
    const running = runtime.run(makeTask(work), output, control.signal);
    await vi.waitFor(() => expect(output.text()).toContain('ready'), { timeout: 5_000, interval: 5 });
    const killedAt = performance.now();
    control.abort(reason);
    return { outcome: await running, ms: performance.now() - killedAt };
  }

  it('refuses work of another kind instead of throwing', async () => {
    if (runtime.name === 'none') return;
    expect(await runtime.run(makeTask({ kind: 'none' }), new Recorder(), never)).toMatchObject({ state: 'error' });
  });

  when('succeeds', 'says success', async (work) => {
    expect(await runtime.run(makeTask(work), new Recorder(), never)).toMatchObject({
      state: 'success',
      reason: null,
    });
  });

  when('fails', 'says failure, with a reason, and what the task said about it', async (work) => {
    const output = new Recorder();
    const outcome = await runtime.run(makeTask(work), output, never);
    expect(outcome.state).toBe('failure');
    expect(outcome.reason).toMatch(/why|exit code 3/);
    expect(output.text()).toContain('why');
  });

  when('prints', 'has passed on all output, in order, when it answers', async (work) => {
    const output = new Recorder();
    await runtime.run(makeTask(work), output, never);
    expect(output.text('out')).toBe('first\nsecond\n');
  });

  when('obeys', 'ends soon after a kill that the task obeys', async (work) => {
    const { outcome, ms } = await killed(work, 'cancelled');
    expect(outcome.state).toBe('failure');
    expect(ms).toBeLessThan(graceMs);
  });

  when('ignores', 'ends after the grace when the task ignores the kill', async (work) => {
    const { outcome, ms } = await killed(work, 'timeout');
    expect(outcome.state).toBe('failure');
    expect(ms).toBeGreaterThanOrEqual(graceMs - 5);
    expect(ms).toBeLessThan(graceMs + 2_000);
  });

  when('removed', 'never says success for a task that somebody else has ended', async (work) => {
    const output = new Recorder();
    const running = runtime.run(makeTask(work), output, never);
    await vi.waitFor(() => expect(output.text()).toContain('ready'), { timeout: 5_000, interval: 5 });
    await endTasks?.();
    expect((await running).state).not.toBe('success');
  });

  when('prints', 'starts nothing when the signal has already aborted', async (work) => {
    const output = new Recorder();
    const outcome = await runtime.run(makeTask(work), output, AbortSignal.abort('draining'));
    expect([outcome.state, output.text()]).toEqual(['failure', '']);
  });
});
