/**
 * The history of a run, from its row and its events. Steps that are not on record are left out: only the last start of a run is
 * known, and old events are deleted before the run.
 */
import type { CallAnswer } from '../../http/client.ts';
import type { ApiContext } from '../context.ts';
import type { runEndpoints } from './endpoints.ts';
import { traceBack } from '../explain/chain.ts';
import { findWorkers } from '../explain/fleet.ts';
import { formatTime, workerName } from '../explain/findings.ts';
import type { FullRun } from './queries.ts';
import { findRetryDue, listRunEvents, type RunEvent } from './view-queries.ts';

type Moment = CallAnswer<(typeof runEndpoints)['GET /api/runs/{id}/history']>['items'][number];

export async function historyOf(ctx: ApiContext, run: FullRun): Promise<Moment[]> {
  const [events, origin, due, worker] = await Promise.all([
    listRunEvents(ctx.db, run.id),
    traceBack(ctx, run.id),
    findRetryDue(ctx.db, run.id),
    run.worker_id === null ? undefined : nameOfWorker(ctx, run.worker_id),
  ]);
  const moments = [
    queuedMoment(run, events, origin?.cause.message),
    ...startedMoments(run, worker),
    ...events.filter(({ type }) => type === 'run.cancel_wished').map(cancelMoment),
    ...endedMoments(run, events),
    ...retryMoments(run, events, due),
    ...events.filter(({ type }) => type === 'retry.cancelled').map(retryCancelledMoment),
  ];
  // the sort is stable, so steps in the same millisecond stay in this order
  return moments.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

const moment = (what: Moment['what'], at: Date, message: string, actor: string | null): Moment => ({
  at: at.toISOString(),
  what,
  message,
  actor,
});

function actorOf(events: readonly RunEvent[], type: string): string | null {
  return events.find((event) => event.type === type)?.actor ?? null;
}

function queuedMoment(run: FullRun, events: readonly RunEvent[], why: string | undefined): Moment {
  const which = run.attempt > 1 ? `queued as attempt ${run.attempt}` : 'queued';
  const message = why === undefined ? which : `${which}: ${why}`;
  return moment('queued', run.queued_at, message, actorOf(events, 'run.created'));
}

function startedMoments(run: FullRun, worker: string | undefined): Moment[] {
  if (run.started_at === null || worker === undefined) return [];
  if (run.lease <= 1) return [moment('started', run.started_at, `started by the worker ${worker}`, null)];
  const message = `handed out for the ${ordinal(run.lease)} time, to the worker ${worker}: it did not end before`;
  return [moment('handed_out_again', run.started_at, message, null)];
}

function ordinal(n: number): string {
  const endings: Readonly<Record<number, string>> = { 1: 'st', 2: 'nd', 3: 'rd' };
  const teens = n % 100 >= 11 && n % 100 <= 13;
  return `${n}${teens ? 'th' : (endings[n % 10] ?? 'th')}`;
}

function cancelMoment({ at, actor }: RunEvent): Moment {
  return moment('cancel_wished', at, 'cancellation requested: its worker will kill it', actor);
}

function endedMoments(run: FullRun, events: readonly RunEvent[]): Moment[] {
  if (run.finished_at === null) return [];
  const code = run.exit_code === null ? '' : ` with exit code ${run.exit_code}`;
  const message = `ended in ${run.state}${code}${run.reason === null ? '' : `: ${run.reason}`}`;
  return [moment('ended', run.finished_at, message, actorOf(events, 'run.finished'))];
}

function retryMoments(run: FullRun, events: readonly RunEvent[], due: Date | undefined): Moment[] {
  const end = events.find(({ type }) => type === 'run.finished');
  const wasScheduled = due !== undefined || (end !== undefined && leftRetry(end.body));
  if (run.finished_at === null || !wasScheduled) return [];
  const next = `attempt ${run.attempt + 1}`;
  const message = due === undefined ? `${next} was scheduled` : `${next} is scheduled for ${formatTime(due)}`;
  return [moment('retry_scheduled', run.finished_at, message, null)];
}

/** The database writes events of runs as JSON objects. */
function leftRetry(body: string): boolean {
  const parsed = JSON.parse(body) as { retry?: boolean };
  return parsed.retry === true;
}

function retryCancelledMoment({ at, actor }: RunEvent): Moment {
  return moment('cancel_wished', at, 'the next attempt was cancelled', actor);
}

async function nameOfWorker(ctx: ApiContext, id: string): Promise<string> {
  const { known } = await findWorkers(ctx);
  const worker = known.find((each) => each.id === id);
  return worker === undefined ? id : workerName(worker);
}
