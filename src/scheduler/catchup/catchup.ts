/**
 * Plans the catch-up of missed instants. A range is cut into pieces with the same number of instants, and the pieces are
 * fired one by one in the order of the policy. Pure functions; `service.ts` fires.
 *
 * A piece is found by counting, not by walking, so a range of a million instants costs no more than its row. The n-th piece
 * is computed without state, so every policy can stop and resume. The row keeps the plan by which it was cut: when the
 * trigger is edited, the rest is cut again by the new plan.
 */
import { compileSchedule, countInstants, instantAt, nextInstant, type Schedule } from '../../calendar/schedule.ts';
import { newestIn, type Range, windowFrom } from '../arrival.ts';
import type { CatchupRow, PlannedCatchup, TriggerRow } from '../queries.ts';
import { specOf } from '../trigger-schedule.ts';

/** Instants per piece. */
const pieceInstants = 500;

export function countPieces(schedule: Schedule, fromMs: number, toMs: number): number {
  return Math.min(2 ** 31 - 1, Math.max(1, Math.ceil(countInstants(schedule, fromMs, toMs) / pieceInstants)));
}

/** The instants of the row's next piece, in the order in which they are queued. */
export function listPieceInstants(row: Omit<CatchupRow, 'trigger_id'>, schedule: Schedule): number[] {
  const piece = numberOfNextPiece(row);
  const instants = piece >= row.pieces ? [] : listInstants(row, schedule, piece);
  if (row.policy === 'latest') return instants.toReversed();
  return row.policy === 'random' ? shuffle(instants, row.seed + piece) : instants;
}

function listInstants({ from_at, to_at }: Pick<CatchupRow, 'from_at' | 'to_at'>, schedule: Schedule, piece: number) {
  const [fromMs, toMs] = [from_at.getTime(), to_at.getTime()];
  const instants: number[] = [];
  // counting finds the place, and nextInstant alone decides what an instant is
  let at = nextInstant(schedule, instantAt(schedule, fromMs, toMs, piece * pieceInstants) - 1);
  for (; at !== undefined && at < toMs && instants.length < pieceInstants; at = nextInstant(schedule, at)) {
    instants.push(at);
  }
  return instants;
}

function numberOfNextPiece({ policy, pieces, next_piece, seed }: Omit<CatchupRow, 'trigger_id'>): number {
  if (policy === 'latest') return pieces - 1 - next_piece;
  return policy === 'random' ? permute(next_piece, pieces, seed) : next_piece;
}

/** A permutation of 0…n−1 without state: multiply by a number coprime to n, then shift. */
function permute(i: number, n: number, seed: number): number {
  let factor = (seed % n) + 1;
  while (gcd(factor, n) !== 1) factor++;
  return Number((BigInt(i) * BigInt(factor) + BigInt(seed)) % BigInt(n));
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

function shuffle(items: readonly number[], seed: number): number[] {
  const keyed = items.map((item, i) => ({ item, key: Math.imul((i + 1) ^ seed, 0x9e3779b1) >>> 0 }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

/** The settings that decide which instants are caught up: the schedule, the policy and its window. */
export function planOf(trigger: TriggerRow): string {
  const { startMs, endMs, periodMs, cron, timezone } = specOf(trigger);
  return JSON.stringify([startMs, endMs, periodMs, cron, timezone, trigger.catchup, trigger.catchup_window_ms]);
}

export type NewCatchup = Omit<PlannedCatchup, 'next_piece'>;

/** Makes the row for a range of missed instants. */
export function cut(trigger: TriggerRow, schedule: Schedule, { fromMs, toMs }: Range): NewCatchup {
  const { id, catchup } = trigger;
  return {
    trigger_id: id,
    from_at: new Date(fromMs),
    to_at: new Date(toMs),
    policy: catchup === 'latest' || catchup === 'random' ? catchup : 'earliest',
    pieces: countPieces(schedule, fromMs, toMs),
    seed: Math.floor(Math.random() * 2 ** 30),
    plan: planOf(trigger),
  };
}

/** The rest of a catch-up whose trigger was edited. Undefined if nothing of it should fire. */
export function recut(
  row: PlannedCatchup,
  trigger: TriggerRow,
  schedule: Schedule,
  nowMs: number,
): NewCatchup | undefined {
  const rest = findRest(row);
  const fromMs = Math.max(rest.fromMs, windowFrom(trigger, nowMs - trigger.offset_ms));
  const first = nextInstant(schedule, fromMs - 1);
  if (trigger.catchup === 'none' || first === undefined || first >= rest.toMs) return undefined;
  const range = { fromMs: first, toMs: rest.toMs };
  if (trigger.catchup !== 'last') return cut(trigger, schedule, range);
  const newest = newestIn(schedule, range);
  return cut(trigger, schedule, { fromMs: newest, toMs: newest + 1 });
}

/** Counts the instants that are left if the trigger is, or becomes, as given. With `random` it may count a piece too many. */
export function countLeft(row: PlannedCatchup, trigger: TriggerRow, schedule: Schedule, nowMs: number): number {
  const isEdited = row.plan !== planOf(trigger);
  const rest = isEdited ? recut(row, trigger, schedule, nowMs) : undefined;
  if (isEdited) return rest === undefined ? 0 : countInstants(schedule, rest.from_at.getTime(), rest.to_at.getTime());
  const { fromMs, toMs } = findRest(row);
  const done = row.policy === 'random' ? row.next_piece * pieceInstants : 0;
  return Math.max(0, countInstants(schedule, fromMs, toMs) - done);
}

/** The range that has not been fired, by the plan it was cut by. With `random`, or an unreadable plan, it is the whole range. */
function findRest(row: PlannedCatchup): Range {
  const [fromMs, toMs] = [row.from_at.getTime(), row.to_at.getTime()];
  const schedule = compilePlan(row);
  if (schedule === undefined || row.next_piece === 0 || row.policy === 'random') return { fromMs, toMs };
  const piece = numberOfNextPiece(row);
  const firstOf = (n: number): number => instantAt(schedule, fromMs, toMs, n * pieceInstants);
  return row.policy === 'latest' ? { fromMs, toMs: firstOf(piece + 1) } : { fromMs: firstOf(piece), toMs };
}

type Plan = readonly [number, number | null, number | null, string | null, string | null];

function compilePlan({ plan }: PlannedCatchup): Schedule | undefined {
  try {
    const [startMs, endMs, periodMs, cron, timezone] = JSON.parse(plan ?? '') as Plan;
    return compileSchedule({ startMs, endMs, periodMs, cron, timezone });
  } catch {
    // the plan may come from another version; firing an instant twice has no effect
    return undefined;
  }
}
