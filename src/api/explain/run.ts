/** Explains why a run has not started, which worker runs it, or how it ended and what followed. */
import { partsOfLane } from '../../contract/lane.ts';
import { shellWord } from '../../kernel/text/shell-word.ts';
import type { ApiContext } from '../context.ts';
import { traceBack } from './chain.ts';
import { findWorkers, notAllowed, roomFor, schedulerAway, unserved, type Workers } from './fleet.ts';
import { gateOf } from './gates.ts';
import { pauseOf } from './pause.ts';
import { countBefore, type ExplainedRun, findNextAttempt, listChildren, maxListed, type TaskOfRun } from './queries.ts';
import {
  formatCount,
  type Finding,
  finding,
  type Findings,
  jobNameOf,
  nameOf,
  type Part,
  formatTime,
  tokenIdOf,
  workerName,
} from './findings.ts';

/** Puts the obstacles first and the cause last. For a finished run: its end, its cause, what followed. */
export async function explainRun(ctx: ApiContext, run: ExplainedRun): Promise<Findings> {
  const [origin, findings] = await Promise.all([traceBack(ctx, run.id), findingsOf(ctx, run)]);
  const cause = origin === undefined ? [] : [origin.cause];
  const ended = run.finished_at !== null;
  return {
    state: run.state,
    findings: ended ? withCause(findings, cause) : [...findings, ...cause],
    chain: origin?.chain ?? [],
  };
}

/** Puts the cause after the end of the run and before what followed. */
function withCause([end, ...followed]: readonly Finding[], cause: readonly Finding[]): Finding[] {
  return [...(end === undefined ? [] : [end]), ...cause, ...followed];
}

function findingsOf(ctx: ApiContext, run: ExplainedRun): Promise<Finding[]> {
  if (run.finished_at !== null) return endOf(ctx, run);
  return run.worker_id === null ? whyNotStarted(ctx, run) : whoRuns(ctx, run, run.worker_id);
}

async function whyNotStarted(ctx: ApiContext, run: ExplainedRun): Promise<Finding[]> {
  const { lane, rank, gate, task } = run;
  if (lane === null || rank === null) return [];
  const paused = run.parked || (task?.paused ?? false);
  const [workers, limit, pause, scheduler] = await Promise.all([
    findWorkers(ctx),
    gate === null ? undefined : gateOf(ctx, { ...run, lane, rank, gate }),
    paused && task !== null ? whyHeld(ctx, task) : undefined,
    schedulerAway(ctx),
  ]);
  const { runtime, queue } = partsOfLane(lane);
  const forbidden = notAllowed(ctx, runtime, { queue });
  const obstacles = [pause, limit, forbidden ?? unserved(lane, workers)].flatMap((each) => each ?? []);
  const blocked = obstacles.length > 0 ? obstacles : [await position(ctx, { id: run.id, lane, rank }, workers)];
  return [...blocked, ...lossesOf(run), ...(scheduler === undefined ? [] : [scheduler])];
}

async function position(
  ctx: ApiContext,
  run: { id: string; lane: string; rank: Date },
  workers: Workers,
): Promise<Finding> {
  return roomFor(run.lane, workers, await countBefore(ctx.db, run));
}

/** A removed task is also marked as paused. */
async function whyHeld(ctx: ApiContext, task: TaskOfRun): Promise<Finding> {
  return task.removed ? removedTask(task) : pauseOf(ctx, task);
}

export function removedTask(task: Part): Finding {
  return finding('task_removed', 'the task is no longer part of its job', { task: task.id, job: task.job_id });
}

const maxLosses = 3;

function lossesOf(run: ExplainedRun): Finding[] {
  if (run.losses === 0) return [];
  const times = run.losses === 1 ? 'once' : 'twice';
  const message = `its worker, or the process that ran it there, was lost ${times}, and it was handed out again; the ${maxLosses}rd loss ends it in error`;
  return [finding('lease_lost', message, { losses: run.losses, lease: run.lease })];
}

async function whoRuns(ctx: ApiContext, run: ExplainedRun, worker: string): Promise<Finding[]> {
  const { known } = await findWorkers(ctx);
  const info = known.find(({ id }) => id === worker);
  const name = info === undefined ? worker : workerName(info);
  const data = {
    worker,
    name: info?.name ?? worker,
    since: run.started_at,
    lease: run.lease,
    lease_until: run.lease_until,
    beat_at: run.beat_at,
  };
  const since = run.started_at === null ? '' : ` since ${formatTime(run.started_at)}`;
  const silent = run.lease_until === null || run.lease_until.getTime() <= ctx.time.now();
  const running = finding('running', `the worker ${name} has run it${since}`, data);
  return [
    ...(run.cancel ? [cancelWished(name)] : []),
    ...(silent ? [silentWorker(run, name)] : []),
    running,
    ...lossesOf(run),
  ];
}

function cancelWished(name: string): Finding {
  return finding(
    'cancel_wished',
    `it is to be cancelled, and the worker ${name} will kill it`,
    {},
    'it ends when its worker has killed it; if the worker is lost, when its lease expires',
  );
}

function silentWorker(run: ExplainedRun, name: string): Finding {
  const heard = run.beat_at === null ? '' : `; its last heartbeat was at ${formatTime(run.beat_at)}`;
  return finding(
    'worker_silent',
    `the worker ${name} has not renewed its lease${heard}`,
    { worker: run.worker_id, lease_until: run.lease_until, beat_at: run.beat_at },
    'it is handed out again once the scheduler has taken it back',
  );
}

const endings = {
  success: ['succeeded', 'it succeeded'],
  failure: ['failed', 'it failed'],
  timeout: ['timed_out', 'it took longer than its timeout and was killed'],
  error: ['errored', 'it could not be run'],
  cancelled: ['cancelled', 'it was cancelled'],
} as const;

async function endOf(ctx: ApiContext, run: ExplainedRun): Promise<Finding[]> {
  const [code, words] = endings[run.state as keyof typeof endings];
  const brief = detailOf(run);
  const data = { reason: run.reason, exit_code: run.exit_code, at: run.finished_at, lease: run.lease };
  const end = { ...finding(code, endMessage(run.state, words, brief), data), brief };
  const { task, instant } = run;
  if (task === null || instant === null) return [end];
  return [end, ...(await whatFollowed(ctx, run, task, instant))];
}

/** The part of the reason that does not repeat the state. The reason of a cancelled run begins with the state. */
function detailOf({ state, reason }: ExplainedRun): string {
  if (reason === null) return '';
  return state === 'cancelled' ? reason.replace(/^(it was )?cancelled ?/, '') : reason;
}

/** The reason of a timeout is already a complete message. */
function endMessage(state: ExplainedRun['state'], words: string, detail: string): string {
  if (detail === '') return words;
  return state === 'timeout' ? detail : `${words} (${detail})`;
}

async function whatFollowed(ctx: ApiContext, run: ExplainedRun, task: TaskOfRun, instant: Date): Promise<Finding[]> {
  const of = { id: run.id, task: task.id, instant };
  const [again, children] = await Promise.all([
    run.state === 'success' ? undefined : findNextAttempt(ctx.db, of),
    run.state === 'cancelled' ? [] : listChildren(ctx.db, { ...of, state: run.state }),
  ]);
  if (again?.id === null) return [retryAt(again, task)];
  if (again !== undefined) {
    const message = `attempt ${again.attempt} followed at ${formatTime(again.at)}`;
    return [finding('tried_again', message, { run: again.id, attempt: again.attempt, at: again.at })];
  }
  if (children.length === 0) return [countedNothing(run, task, instant)];
  const shown = children.slice(0, maxListed);
  const names = shown.slice(0, 3).map((child) => nameOf('task', child, task));
  const rest = children.length > names.length ? ' and others' : '';
  const data = shown.map((child) => ({
    token: tokenIdOf(child.id, child.instant),
    name: nameOf('task', child, task),
    kind: child.kind,
    count: child.count,
    threshold: child.threshold,
    state: child.state,
  }));
  return [finding('counted_children', `it counts for ${names.join(', ')}${rest}`, { children: data })];
}

function retryAt(retry: { attempt: number; at: Date }, task: Pick<TaskOfRun, 'max_attempts'>): Finding {
  const { attempt, at } = retry;
  const message = `attempt ${attempt} of ${task.max_attempts} comes at ${formatTime(at)}`;
  return finding('retry_scheduled', message, { attempt, max_attempts: task.max_attempts, at });
}

function countedNothing(run: ExplainedRun, task: TaskOfRun, instant: Date): Finding {
  const again = `millrace activate ${jobNameOf(task)} ${shellWord(task.name)} ${formatTime(instant)}`;
  const attempts = run.attempt < task.max_attempts ? '' : ` after ${formatCount(run.attempt, 'attempt')}`;
  if (run.state === 'success') return finding('counted_nothing', 'nothing waits for its success');
  const what = run.state === 'cancelled' ? 'a cancelled run counts for nothing' : `nothing waits for that${attempts}`;
  return finding('counted_nothing', what, { attempt: run.attempt, max_attempts: task.max_attempts }, again);
}
