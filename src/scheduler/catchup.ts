/**
 * Catch-up: missed instants are fired in bounded pieces between live firings, at `backfill` priority, in the order that
 * the trigger's policy names. The work is a row that says how far it has come, so a restart goes on where it stopped;
 * a piece that is fired twice has no second effect (I1).
 */
import { compileSchedule, instantsBetween, nextInstant, type Schedule } from '../jobs/schedule.ts';
import type { Db } from '../kernel/sql.ts';
import { steady, type Service } from '../kernel/service.ts';
import { advanceCatchup, type CatchupRow, fireTriggers, nextCatchup, type TriggerRow } from './queries.ts';
import type { Scheduling } from './scheduling.ts';
import { specOf } from './spec.ts';

/** About how many instants make a piece, and how many fire in one commit. */
const pieceInstants = 500;
const sweepMs = 30_000;

/** Into how many pieces of equal length the range is cut so that each holds about `pieceInstants`. */
export function piecesOf(schedule: Schedule, fromMs: number, toMs: number): number {
  let at = nextInstant(schedule, fromMs - 1);
  for (let n = 0; n < pieceInstants; n++) {
    if (at === undefined || at >= toMs) return 1;
    at = nextInstant(schedule, at);
  }
  if (at === undefined || at >= toMs) return 1;
  return Math.min(2 ** 31 - 1, Math.ceil((toMs - fromMs) / (at - fromMs)));
}

/** The instants of the row's next piece, in the order they are to be queued. */
export function pieceInstantsOf(row: CatchupRow, schedule: Schedule): number[] {
  const [fromMs, toMs] = [row.from_at.getTime(), row.to_at.getTime()];
  const piece = pieceNumber(row);
  const length = (toMs - fromMs) / row.pieces;
  const start = fromMs + Math.floor(piece * length);
  const end = piece === row.pieces - 1 ? toMs : fromMs + Math.floor((piece + 1) * length);
  const instants = [...instantsBetween(schedule, start, end)];
  if (row.policy === 'latest') return instants.toReversed();
  return row.policy === 'random' ? shuffled(instants, row.seed + piece) : instants;
}

function pieceNumber(row: CatchupRow): number {
  if (row.policy === 'latest') return row.pieces - 1 - row.next_piece;
  return row.policy === 'random' ? scattered(row.next_piece, row.pieces, row.seed) : row.next_piece;
}

/** A permutation of 0…n−1 that needs no memory: multiply by a number coprime to n, and shift. */
function scattered(i: number, n: number, seed: number): number {
  let factor = (seed % n) + 1;
  while (gcd(factor, n) !== 1) factor++;
  return Number((BigInt(i) * BigInt(factor) + BigInt(seed)) % BigInt(n));
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

function shuffled(items: readonly number[], seed: number): number[] {
  const keyed = items.map((item, i) => ({ item, key: Math.imul((i + 1) ^ seed, 0x9e3779b1) >>> 0 }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

export function catchupService(scheduling: Scheduling): Service {
  const { db, time, work, fault } = scheduling;
  return steady(
    'catchup',
    async (signal) => {
      const row = await nextCatchup(db);
      if (row === undefined) await work.catchup.wait(sweepMs, signal);
      else scheduling.ready(await firePiece(db, row, new Date(time.now())));
    },
    fault('catching up'),
  );
}

async function firePiece(db: Db, row: CatchupRow & TriggerRow, at: Date): Promise<number> {
  const instants = pieceInstantsOf(row, compileSchedule(specOf(row)));
  let created = 0;
  for (let done = 0; done < instants.length; done += pieceInstants) {
    const firings = instants.slice(done, done + pieceInstants).map((instantMs) => ({ triggerId: row.id, instantMs }));
    created += (await fireTriggers(db, firings, { priority: 'backfill', order: row.policy, at })).created;
  }
  await advanceCatchup(db, row);
  return created;
}
