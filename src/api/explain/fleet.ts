/** Findings about the installation: which workers could take a run, and whether a scheduler is running. */
import type { WorkerInfo } from '../../contract/context.ts';
import { partsOfLane } from '../../contract/lane.ts';
import { leaseTimes } from '../../contract/lease-times.ts';
import { mayRun } from '../../runtimes/local-tasks.ts';
import { shellWord } from '../../kernel/text/shell-word.ts';
import { findKind } from '../../runtimes/kinds.ts';
import type { ApiContext } from '../context.ts';
import { formatCount, type Finding, finding, formatTime, workerName } from './findings.ts';

const rememberedMs = 86_400_000;
/** After this time without a heartbeat, a scheduler counts as gone, as in `/healthz`. */
const schedulerSilentMs = 10_000;

/** Workers with a heartbeat within a day, and those of them that may take runs: alive, and not shutting down. */
export interface Workers {
  readonly known: readonly WorkerInfo[];
  readonly alive: readonly WorkerInfo[];
}

export async function findWorkers(ctx: ApiContext): Promise<Workers> {
  const nowMs = ctx.time.now();
  const known = await ctx.directory.workers(new Date(nowMs - rememberedMs));
  const since = nowMs - leaseTimes(ctx.settings.leaseMs).workerLifeMs;
  return { known, alive: known.filter(({ lastSeenAt, places }) => lastSeenAt.getTime() > since && places > 0) };
}

/** Explains why no worker can take a run of this lane. Returns undefined if a worker can. */
export function unserved(lane: string, workers: Workers): Finding | undefined {
  const { runtime, queue } = partsOfLane(lane);
  const able = workers.alive.filter(({ runtimes }) => runtimes.includes(runtime));
  if (workers.alive.length === 0) return noWorkerAlive(runtime, queue, workers.known);
  if (able.some(({ queues }) => queues.includes(queue))) return undefined;
  const away = unavailable({ runtime, queue }, workers.alive);
  if (away !== undefined) return away;
  if (able.length === 0) {
    const runtimes = [...new Set(workers.alive.flatMap((worker) => worker.runtimes))].sort();
    return finding(
      'runtime_unserved',
      `no worker alive serves ${runtime} tasks; available runtimes: ${formatList(runtimes)}`,
      { runtime, queue, workers: workers.alive.length, runtimes },
      findKind(runtime)?.remedy(queue === 'default' ? '' : ` --queue ${shellWord(queue)}`),
    );
  }
  const queues = [...new Set(able.flatMap((worker) => worker.queues))].sort();
  return finding(
    'queue_unserved',
    `no worker alive serves the queue ${queue} with the runtime ${runtime}; served queues: ${formatList(queues)}`,
    { runtime, queue, workers: able.length, queues },
    `start one: millrace worker --queue ${shellWord(queue)}`,
  );
}

/** A finding if workers serve the runtime and queue, but the runtime is unavailable on them. */
function unavailable(
  { runtime, queue }: { runtime: string; queue: string },
  alive: readonly WorkerInfo[],
): Finding | undefined {
  const away = alive.flatMap((worker) => {
    const reason = worker.unavailable?.[runtime];
    return reason !== undefined && worker.queues.includes(queue) ? [{ worker, reason }] : [];
  });
  const [first] = away;
  if (first === undefined) return undefined;
  const more = away.length > 1 ? ` (and ${formatCount(away.length - 1, 'other worker')})` : '';
  return finding(
    'runtime_unavailable',
    `the runtime ${runtime} is unavailable on the worker ${workerName(first.worker)}${more}: ${first.reason}`,
    { runtime, queue, workers: away.slice(0, 20).map(({ worker: { id }, reason }) => ({ worker: id, reason })) },
    'it starts once the runtime answers: workers check every 2 s',
  );
}

/** A finding if a setting of the installation forbids this tenant tasks of a runtime. */
export function notAllowed(
  { tenant, settings }: ApiContext,
  runtime: string,
  data: Readonly<Record<string, unknown>>,
): Finding | undefined {
  if (mayRun(runtime, tenant.name, settings.localTasks)) return undefined;
  return finding(
    'runtime_not_allowed',
    `only the tenant default may run tasks of the runtime ${runtime} here (MILLRACE_LOCAL_TASKS=default)`,
    { ...data, runtime, setting: 'MILLRACE_LOCAL_TASKS' },
    'ask the operator of the installation to change the setting, or give the task another runtime',
  );
}

function noWorkerAlive(runtime: string, queue: string, known: readonly WorkerInfo[]): Finding {
  const last = known.toSorted((a, b) => b.lastSeenAt.getTime() - a.lastSeenAt.getTime())[0];
  const heard =
    last === undefined ? '' : `; the last heartbeat came from ${workerName(last)} at ${formatTime(last.lastSeenAt)}`;
  return finding(
    'no_worker',
    `no worker is alive${heard}`,
    { runtime, queue, last_worker: last?.id ?? null, last_seen_at: last?.lastSeenAt ?? null },
    'start one: millrace worker',
  );
}

/** For a run that a worker may take: whether a place is free. A run of runtime `none` needs no place. */
export function roomFor(lane: string, workers: Workers, before: number): Finding {
  const { runtime, queue } = partsOfLane(lane);
  const serving = workers.alive.filter((w) => w.runtimes.includes(runtime) && w.queues.includes(queue));
  const places = sum(serving.map((worker) => worker.places));
  const running = sum(serving.map((worker) => worker.running));
  const data = { runtime, queue, before, workers: serving.length, places, running };
  const ahead =
    before === 0 ? 'it is the next of its lane' : `about ${formatCount(before, 'run')} of its lane come first`;
  if (runtime === 'none') return finding('queued', `it is queued: ${ahead}, and it takes no place`, data);
  if (running >= places) {
    return finding(
      'places_taken',
      `all ${places} places of the ${formatCount(serving.length, 'worker')} that may take it are taken; ${ahead}`,
      data,
      'it starts when its turn comes; more workers or a larger MILLRACE_MAX_TASKS make room',
    );
  }
  return finding('queued', `it is queued: ${ahead}, and ${places - running} of ${places} places are free`, data);
}

export async function schedulerAway(ctx: ApiContext): Promise<Finding | undefined> {
  const alive = await ctx.directory.schedulers(new Date(ctx.time.now() - schedulerSilentMs));
  if (alive.length > 0) return undefined;
  return finding(
    'no_scheduler',
    'no scheduler of this tenant is running',
    {},
    'millrace status says why; millrace host starts one',
  );
}

function formatList(words: readonly string[]): string {
  return words.length === 0 ? 'none' : words.join(', ');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
