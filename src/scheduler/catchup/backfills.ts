/**
 * Backfills: instants of a job are fired again, in the pieces of a catch-up and between live firings, which they never
 * delay. How far one has come is in its rows and moves in the commit that fires a piece, so a restart goes on where it
 * stopped. A piece waits while the job is paused, or while thousands of the backfill's runs are still queued.
 */
import { compileSchedule } from '../../calendar/schedule.ts';
import { checkpoint } from '../checkpoints.ts';
import type { Service } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import {
  type BackfillPiece,
  cancelBackfillRuns,
  fireBackfill,
  nextBackfillPiece,
  openBackfills,
  settleBackfill,
} from './backfill-queries.ts';
import { pieceInstantsOf } from './catchup.ts';
import type { Progress } from '../part-faults.ts';
import type { Scheduling } from '../scheduling.ts';
import { specOf } from '../spec.ts';

/** While so many of its runs are queued, a backfill fires nothing. */
const backlog = 2_000;
const cancelBatch = 1_000;
/** How soon one that is held back is looked at again, and one that only has to end. */
const heldMs = 250;
const openMs = 1_000;
const sweepMs = 30_000;

export function backfillService(scheduling: Scheduling): Service {
  const { db, time, work, processor } = scheduling;
  let lookAt = 0;
  return processor('backfills', 'backfilling', async (signal, progress) => {
    const piece = await nextBackfillPiece(db, backlog);
    if (piece !== undefined) await firePiece(scheduling, piece);
    if (piece !== undefined && time.now() < lookAt) return undefined;
    progress();
    const { open, unfired } = await settleRipe(scheduling, progress);
    lookAt = time.now() + openMs;
    if (piece !== undefined) return undefined;
    return () => work.backfills.wait(unfired ? heldMs : open > 0 ? openMs : sweepMs, signal);
  });
}

async function firePiece({ db, time, ready, killed: tell }: Scheduling, piece: BackfillPiece): Promise<void> {
  const instants = pieceInstantsOf(piece, compileSchedule(specOf(piece)));
  checkpoint('backfills.piece');
  const { created, killed } = await fireBackfill(db, piece, instants, new Date(time.now()));
  checkpoint('backfills.fired');
  ready(created);
  await tell(killed);
}

/** Ends what is over, and goes on cancelling where whoever began it died; answers what is left. */
async function settleRipe(
  { ctx, db, time }: Scheduling,
  progress: Progress,
): Promise<{ open: number; unfired: boolean }> {
  const { open, unfired, ripe } = await openBackfills(db);
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

/** Cancels what is queued of a cancelled backfill; what somebody holds just now is left to the next look. */
export async function clearBackfill(
  db: Db,
  id: string,
  who: { actor: string; at: Date },
  progress: Progress = () => {},
): Promise<void> {
  while ((await cancelBackfillRuns(db, id, { limit: cancelBatch, ...who })) > 0) progress();
}
