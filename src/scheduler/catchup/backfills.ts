/**
 * Backfills fire instants of a job again. They use the pieces of a catch-up, between live firings, which they never delay.
 * Their rows record the progress in the commit that fires a piece, so a restart resumes where it stopped. A piece waits
 * while the job is paused, or while thousands of the backfill's runs are still queued.
 */
import { compileSchedule } from '../../calendar/schedule.ts';
import { checkpoint } from '../checkpoints.ts';
import type { Service } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import {
  type BackfillPiece,
  cancelBackfillRuns,
  fireBackfill,
  findNextBackfillPiece,
  findOpenBackfills,
  settleBackfill,
} from './backfill-queries.ts';
import { listPieceInstants } from './catchup.ts';
import type { Progress } from '../part-faults.ts';
import type { Scheduling } from '../scheduling.ts';
import { specOf } from '../trigger-schedule.ts';

/** A backfill with this many queued runs fires nothing. */
const maxQueuedRuns = 2_000;
const runsPerCancel = 1_000;
/** The intervals between checks of a backfill that is held back, and of one that only has to end. */
const heldBackMs = 250;
const openMs = 1_000;
const sweepMs = 30_000;

export function backfillService(scheduling: Scheduling): Service {
  const { db, time, work, processor } = scheduling;
  let nextSettleMs = 0;
  return processor('backfills', 'backfilling', async (signal, progress) => {
    const piece = await findNextBackfillPiece(db, maxQueuedRuns);
    if (piece !== undefined) await firePiece(scheduling, piece);
    if (piece !== undefined && time.now() < nextSettleMs) return undefined;
    progress();
    const { open, unfired } = await settleRipe(scheduling, progress);
    nextSettleMs = time.now() + openMs;
    if (piece !== undefined) return undefined;
    return () => work.backfills.wait(unfired ? heldBackMs : open > 0 ? openMs : sweepMs, signal);
  });
}

async function firePiece({ db, time, ready, killed: sendKills }: Scheduling, piece: BackfillPiece): Promise<void> {
  const instants = listPieceInstants(piece, compileSchedule(specOf(piece)));
  checkpoint('backfills.piece');
  const { created, killed } = await fireBackfill(db, piece, instants, new Date(time.now()));
  checkpoint('backfills.fired');
  ready(created);
  await sendKills(killed);
}

/** Ends backfills that are over, and resumes cancellations whose process died. Returns the state of the remaining backfills. */
async function settleRipe(
  { ctx, db, time }: Scheduling,
  progress: Progress,
): Promise<{ open: number; unfired: boolean }> {
  const { open, unfired, ripe } = await findOpenBackfills(db);
  let ended = 0;
  for (const { id, over } of ripe) {
    checkpoint('backfills.settle');
    const at = new Date(time.now());
    if (!over) await clearBackfill(db, id, { actor: 'scheduler', at }, progress);
    else if (await settleBackfill(db, id, at)) ended++;
    progress();
  }
  if (ended > 0) ctx.hints.send('events');
  return { open: open - ended, unfired };
}

/** Cancels the queued runs of a cancelled backfill. Rows that are locked now are left to the next check. */
export async function clearBackfill(
  db: Db,
  id: string,
  who: { actor: string; at: Date },
  progress: Progress = () => {},
): Promise<void> {
  while ((await cancelBackfillRuns(db, id, { limit: runsPerCancel, ...who })) > 0) progress();
}
