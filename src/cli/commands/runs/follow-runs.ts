/** Waits until all runs of a job's instant have ended, and prints their changes to stderr. */
import { finalStates } from '../../../contract/wire.ts';
import { MillraceError } from '../../../errors.ts';
import { CallFailed } from '../../../http/client.ts';
import { delayMs } from '../../../kernel/backoff.ts';
import { pause } from '../../../kernel/service.ts';
import { showTime, stateWord } from '../../print/output.ts';
import { listRuns, type RunItem } from '../../session/pages.ts';
import type { Server } from '../../session/server.ts';
import type { Session } from '../../session/session.ts';
import { makeWaitingHint } from './waiting-hint.ts';
import { oneLine } from '../../print/width.ts';

export interface Followed {
  readonly job: string;
  readonly instant: string;
  /** The runs that the command started. Older runs of the same instant are ignored. */
  readonly started: readonly string[];
}

const polling = { firstMs: 100, capMs: 1_000, jitter: 0 };
/** How long to wait for a server that is unavailable, such as during a restart. */
export const patienceMs = 30_000;

const final = new Set<string>(finalStates);

/** Returns the last run of each task, in the order in which they were queued. */
export async function followRuns(session: Session, server: Server, followed: Followed): Promise<RunItem[]> {
  const shown = new Map<string, string>();
  const hint = makeWaitingHint(session, server);
  let answeredAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    session.signal.throwIfAborted();
    try {
      const { runs, over } = await fetchRuns(server, followed);
      answeredAt = Date.now();
      if (printChanges(session, runs, shown)) attempt = 0;
      if (over) return lastOfEachTask(runs);
      await hint(runs);
    } catch (error) {
      if (!isTransient(error) || Date.now() - answeredAt > patienceMs) throw error;
    }
    await pause(delayMs(polling, attempt), session.signal);
  }
}

/** Whether the server is unreachable or reports itself as unavailable, so that a retry may succeed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof CallFailed) return error.status === 503;
  return error instanceof MillraceError && error.code === 'unreachable';
}

const movingStates = new Set(['active', 'running', 'retry']);

/**
 * Reads runs before tokens. The commit that ends a run also creates what follows from it: either a run, which this read then
 * sees too, or a retry, which the token or the run that the retry has become still shows.
 */
async function fetchRuns(
  server: Server,
  { job, instant, started }: Followed,
): Promise<{ runs: RunItem[]; over: boolean }> {
  const all = await listRuns(server, { job, instant }, Number.POSITIVE_INFINITY);
  const tokens = await server.tenant('GET /api/jobs/{id}/tokens/{instant}', { params: { id: job, instant } });
  const since = Math.min(...all.filter((run) => started.includes(run.id)).map((run) => Date.parse(run.queued_at)));
  const runs = all.filter((run) => Date.parse(run.queued_at) >= since).toReversed();
  const moving = tokens.some((token) => movingStates.has(token.state) || token.count >= token.threshold);
  const known = runs.length > 0 || started.length === 0;
  return { runs, over: known && !moving && runs.every((run) => final.has(run.state)) };
}

function printChanges(session: Session, runs: readonly RunItem[], shown: Map<string, string>): boolean {
  let isChanged = false;
  for (const run of runs) {
    if (shown.get(run.id) === run.state) continue;
    shown.set(run.id, run.state);
    const reason = run.reason === null ? '' : `: ${run.reason}`;
    const attempt = run.attempt > 1 ? ` (attempt ${run.attempt})` : '';
    const at = showTime(run.finished_at ?? run.started_at ?? run.queued_at);
    session.out.note(oneLine(`${at} ${run.task?.name ?? run.id} ${stateWord(run.state)}${attempt}${reason}`));
    isChanged = true;
  }
  return isChanged;
}

function lastOfEachTask(runs: readonly RunItem[]): RunItem[] {
  const last = new Map<string, RunItem>();
  for (const run of runs) {
    const key = run.task?.id ?? run.id;
    last.delete(key);
    last.set(key, run);
  }
  return [...last.values()];
}
