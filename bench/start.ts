/**
 * `bench -- start`: measures how long a person waits. First `up` in a new folder until the first task has run, then `up`
 * again until it is healthy, the memory of all processes when idle, and `up` of an installation with 100,000 triggers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { stopEmbedded } from '../src/postgres/embedded/embedded.ts';
import { atEnd } from './ending.ts';
import type { Options } from './options.ts';
import { percentiles } from './percentiles.ts';
import { pidsBelow, proportionalBytes } from './processes.ts';
import { startUp, type Up, type UpOptions } from './product.ts';
import { aim, type Report, type Result } from './report.ts';
import { startServer, temporaryHome } from './server.ts';
import { controlDatabase, openTenant, tenantDatabase } from './tenant.ts';

const idleMs = 5_000;
const triggersPerJob = 1_000;

export async function start(options: Options, report: Report): Promise<Result> {
  const times = options.quick ? 1 : 5;
  const trials: Trial[] = [];
  for (let i = 0; i < times; i++) {
    report.progress(`a new home, ${i + 1} of ${times}`);
    trials.push(options.database === undefined ? await tryHome(options) : await tryExisting(options));
  }
  const cold = percentiles(trials.map(({ coldMs }) => coldMs));
  const warm = percentiles(trials.map(({ warmMs }) => warmMs));
  const memory = percentiles(trials.map(({ memoryMb }) => memoryMb)).p50;
  const triggers = options.quick ? 2_000 : 100_000;
  const many = await startWithTriggers(options, triggers, report);
  const named = `${triggers.toLocaleString('en-US')} triggers`;
  report.line('Waiting, in ms');
  report.table(
    ['', 'n', 'median', 'worst'],
    [
      ['cold `up` to first finished run', times, Math.round(cold.p50), Math.round(cold.max)],
      ['warm `up` to healthy', times, Math.round(warm.p50), Math.round(warm.max)],
      [`warm \`up\` to ${named} queued`, 1, Math.round(many.queuedMs), null],
      ['the same where all are new, and half have missed an instant', 1, Math.round(many.newMs), null],
    ],
  );
  const aims = [
    aim('cold `up` to first finished run', cold.p50 / 1_000, { below: 3 }, ' s'),
    aim('warm `up` to healthy', warm.p50 / 1_000, { below: 1.5 }, ' s'),
    aim(
      `idle memory of \`up\`${options.database === undefined ? ' with PostgreSQL' : ''}`,
      memory,
      { below: 250 },
      ' MB',
    ),
    aim(`start with ${named}`, many.queuedMs / 1_000, { below: 5 }, ' s'),
  ];
  return { rate: null, raw: null, ratio: null, percentiles: { cold, warm }, aims, details: { memoryMb: memory, many } };
}

interface Trial {
  readonly coldMs: number;
  readonly warmMs: number;
  readonly memoryMb: number;
}

async function tryHome(options: Options): Promise<Trial> {
  const { home, remove } = await temporaryHome();
  const stopServer = atEnd(async () => void (await stopEmbedded(home, { mode: 'immediate' })));
  const trial = await tryTwice({ home, worker: true }, options);
  await stopServer();
  await remove();
  return trial;
}

/** The server is running already, and has no database for `up` yet. */
async function tryExisting(options: Options): Promise<Trial> {
  const server = await startServer(options);
  const databaseUrl = server.address(controlDatabase).url;
  const trial = await tryTwice({ home: server.home, databaseUrl, worker: true }, options);
  await server.stop();
  return trial;
}

async function tryTwice(up: UpOptions, { quick }: Options): Promise<Trial> {
  const coldMs = await timed(async () => {
    const started = await startUp(up);
    await finishFirstRun(started);
    return started;
  });
  const warmMs = await timed(() => startUp(up), !quick);
  return { coldMs: coldMs.ms, warmMs: warmMs.ms, memoryMb: warmMs.memoryMb };
}

/** Measures the time until `start` resolves, and the memory of all processes, after a pause if `idle`. */
async function timed(startUpAndWait: () => Promise<Up>, idle = false): Promise<{ ms: number; memoryMb: number }> {
  const startedAt = performance.now();
  const up = await startUpAndWait();
  const ms = performance.now() - startedAt;
  if (idle) await sleep(idleMs);
  const memoryMb = (await proportionalBytes(await pidsBelow(up.pid))) / 2 ** 20;
  await up.stop();
  return { ms, memoryMb };
}

const hello = {
  project: 'bench',
  name: 'hello',
  description: '',
  tasks: [{ name: 'greet', process: { command: ['echo', 'hello'] } }],
};

/** Does what a new user does: applies a job that runs a program, and runs it by hand. */
async function finishFirstRun({ call }: Up): Promise<void> {
  await call('POST /api/projects', { body: { name: hello.project } });
  const { id } = await call('POST /api/jobs', {
    body: JSON.stringify(hello),
    headers: { 'content-type': 'application/json' },
  });
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
  const run = runs[0] ?? '';
  while ((await call('GET /api/runs/{id}', { params: { id: run } })).state !== 'success') await sleep(5);
}

async function startWithTriggers(
  { database }: Options,
  count: number,
  report: Report,
): Promise<{ newMs: number; queuedMs: number }> {
  const server = await startServer({ database });
  const control = await server.fresh(controlDatabase);
  const options = { home: server.home, databaseUrl: control.url, worker: true };
  const first = await startUp(options);
  await first.stop();
  report.progress(`applying ${count} triggers`);
  const tenant = await openTenant(control, server.address(tenantDatabase));
  await tenant.apply(Array.from({ length: count / triggersPerJob }, (_, i) => jobOf(i)));
  await tenant.close();
  report.progress('starting with them, new');
  const newMs = await startAndQueue(options, count);
  report.progress('starting with them again');
  const queuedMs = await startAndQueue(options, count);
  await server.stop();
  return { newMs, queuedMs };
}

/** Measures the time from the start of `up` until all triggers are queued. */
async function startAndQueue(options: UpOptions, count: number): Promise<number> {
  const startedAt = performance.now();
  const up = await startUp(options);
  while ((await countQueued(up)) < count) await sleep(20);
  const ms = performance.now() - startedAt;
  await up.stop();
  return ms;
}

async function countQueued({ call }: Up): Promise<number> {
  const schedulers = await call('GET /api/schedulers');
  return Math.max(0, ...schedulers.map(({ queued_triggers: n }) => n));
}

/** A job with triggers of every kind: periods and cron expressions, some in a time zone. */
function jobOf(number: number): object {
  const kinds = [
    { period: '1 hour' },
    { cron: '15 4 * * *' },
    { cron: '0 30 6 * * *', timezone: 'Europe/Berlin' },
    { period: '1 day', timezone: 'America/New_York' },
  ];
  const start = new Date().toISOString();
  return {
    name: `job ${number}`,
    triggers: Array.from({ length: triggersPerJob }, (_, i) => ({ name: `t${i}`, start, ...kinds[i % kinds.length] })),
    tasks: [{ name: 'only', depends: ['trigger/t0'] }],
  };
}
