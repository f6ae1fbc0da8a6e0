/**
 * `bench -- containers`: what Millrace adds to a container. One at a time against `docker run` of the same image, and eight at a time
 * against the same calls of the Engine API without Millrace. Both take turns on one engine, which the benchmark starts by itself.
 */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  createContainer,
  removeContainer,
  startContainer,
  waitForEnd,
} from '../src/runtimes/docker/container-calls.ts';
import { ContainerLog } from '../src/runtimes/docker/container-log.ts';
import { EngineClient } from '../src/runtimes/docker/engine-client.ts';
import { newId } from '../src/kernel/id.ts';
import { type EngineProcess, startDocker } from '../test/harness/containers/engine-process.ts';
import { testImage } from '../test/harness/containers/test-image.ts';
import { atEnd } from './ending.ts';
import type { Options } from './options.ts';
import { percentiles } from './percentiles.ts';
import { startUp, type Up } from './product.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { startServer } from './server.ts';

const run = promisify(execFile);
const atOnce = 8;
const command = ['echo', 'done'];
const hostConfig = {
  NetworkMode: 'none',
  Init: true,
  PidsLimit: 4_096,
  SecurityOpt: ['no-new-privileges'],
  LogConfig: { Type: 'local', Config: {} },
};

export async function containers(options: Options, report: Report): Promise<Result> {
  const [pairs, rounds, batch] = options.quick ? [2, 1, atOnce] : [25, 5, 5 * atOnce];
  const server = await startServer(options);
  const engine = await startDocker();
  const stopEngine = atEnd(engine.stop);
  const up = await startUp({
    home: server.home,
    worker: true,
    places: atOnce,
    ...(options.database === undefined ? {} : { databaseUrl: (await server.fresh('millrace_bench_control')).url }),
    env: { MILLRACE_DOCKER_HOST: engine.host, MILLRACE_DOCKER_NETWORK: 'none' },
  });
  const one = await makeJob(up, 'one', 1);
  const many = await makeJob(up, 'many', batch);
  await runJob(up, one); // the worker may not have joined the lane yet
  report.progress(`${pairs} containers, one at a time`);
  const alone = await alternate(pairs, {
    ours: () => runJob(up, one),
    theirs: () => dockerRun(engine),
  });
  report.progress(`${rounds} × ${batch} containers, ${atOnce} at a time`);
  const client = new EngineClient({ socketPath: engine.socket });
  const together = await alternate(rounds, {
    ours: async () => batch / ((await runJob(up, many)) / 1_000),
    theirs: async () => batch / ((await plainCalls(client, batch)) / 1_000),
  });
  await up.stop();
  await stopEngine();
  await server.stop();
  return conclude(report, { alone, together });
}

interface Pair {
  readonly ours: number[];
  readonly theirs: number[];
}

/** Each side goes first in every second round. */
async function alternate(
  rounds: number,
  { ours, theirs }: { readonly ours: () => Promise<number>; readonly theirs: () => Promise<number> },
): Promise<Pair> {
  const measured: Pair = { ours: [], theirs: [] };
  for (let round = 0; round < rounds; round++) {
    const sides = [
      async () => void measured.ours.push(await ours()),
      async () => void measured.theirs.push(await theirs()),
    ];
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side();
  }
  return measured;
}

async function makeJob({ call }: Up, name: string, tasks: number): Promise<string> {
  await call('POST /api/projects', { body: { name: 'bench' } });
  const uuid = newId();
  const docker = { image: testImage, args: command };
  const list = Array.from({ length: tasks }, (_, i) => ({ name: `t${i}`, docker }));
  await call('PUT /api/jobs', { body: JSON.stringify({ uuid, project: 'bench', name, tasks: list }) });
  return uuid;
}

/** Milliseconds from the first run that is queued to the last one that has ended. */
async function runJob({ call }: Up, job: string): Promise<number> {
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id: job }, body: {} });
  const spans = [];
  for (const id of runs) spans.push(await endOf(call, id));
  const queued = Math.min(...spans.map(({ queuedAt }) => queuedAt));
  return Math.max(...spans.map(({ finishedAt }) => finishedAt)) - queued;
}

async function endOf(call: Up['call'], id: string): Promise<{ queuedAt: number; finishedAt: number }> {
  for (;;) {
    const found = await call('GET /api/runs/{id}', { params: { id } });
    if (found.finished_at !== null) {
      if (found.state !== 'success') throw new Error(`a run ended in ${found.state}: ${found.reason}`);
      return { queuedAt: Date.parse(found.queued_at), finishedAt: Date.parse(found.finished_at) };
    }
    await sleep(20);
  }
}

/** The same limits as Millrace sets. The container is removed afterwards, as Millrace does it. */
async function dockerRun(engine: EngineProcess): Promise<number> {
  const name = `bench-${newId()}`;
  const limits = ['--network', 'none', '--init', '--pids-limit', '4096', '--log-driver', 'local'];
  const security = ['--security-opt', 'no-new-privileges'];
  const startedAt = performance.now();
  await run('/usr/bin/docker', [
    '--host',
    engine.host,
    'run',
    '--name',
    name,
    ...limits,
    ...security,
    testImage,
    ...command,
  ]);
  const ms = performance.now() - startedAt;
  await engine.docker('rm', name);
  return ms;
}

async function plainCalls(client: EngineClient, count: number): Promise<number> {
  const startedAt = performance.now();
  let left = count;
  const work = async (): Promise<void> => {
    while (left-- > 0) await plainContainer(client);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return performance.now() - startedAt;
}

async function plainContainer(client: EngineClient): Promise<void> {
  const { signal } = new AbortController();
  const how = { signal, onAway: () => {} };
  const body = { Image: testImage, Cmd: command, HostConfig: hostConfig };
  const id = await createContainer(client, `plain-${newId()}`, body, signal);
  await startContainer(client, id, how);
  const log = new ContainerLog(client, id, { write: () => undefined });
  await Promise.all([waitForEnd(client, id, how), log.read({ follow: true })]);
  await removeContainer(client, id);
}

function conclude(report: Report, { alone, together }: { readonly alone: Pair; readonly together: Pair }): Result {
  const [ours, theirs] = [percentiles(alone.ours), percentiles(alone.theirs)];
  report.line('One container at a time, in ms');
  report.table(
    ['', 'n', 'p50', 'p90', 'max'],
    [
      ['Millrace: queued → finished', ours.n, ...[ours.p50, ours.p90, ours.max].map(figure)],
      ['docker run', theirs.n, ...[theirs.p50, theirs.p90, theirs.max].map(figure)],
    ],
  );
  const [rate, raw] = [percentiles(together.ours).p50, percentiles(together.theirs).p50];
  report.line(`${atOnce} at a time, containers per second (median of ${together.ours.length} rounds)`);
  report.table(
    ['', 'rate'],
    [
      ['Millrace', figure(rate)],
      ['the same calls of the Engine API', figure(raw)],
    ],
  );
  return {
    rate,
    raw,
    ratio: rate / raw,
    percentiles: { millrace: ours, dockerRun: theirs },
    aims: [
      aim('a container run, p50, beyond docker run', (ours.p50 / theirs.p50 - 1) * 100, { atMost: 15 }, ' %'),
      aim(`${atOnce} at a time, against the Engine API`, rate / raw, { atLeast: 0.9 }, ''),
    ],
    details: { alone, together },
  };
}
