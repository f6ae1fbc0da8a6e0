/**
 * Plans a backfill: its triggers, ranges and instants. An instant that is not due yet is left to its trigger. Instants are
 * counted without walking them.
 */
import { compileSchedule, countInstants, instantsBetween, type Schedule } from '../../calendar/schedule.ts';
import type { Db } from '../../kernel/sql.ts';
import { countPieces } from '../../scheduler/catchup/catchup.ts';
import { specOf } from '../../scheduler/trigger-schedule.ts';
import { type BackfillTrigger, type NewPart, findUnfired } from './queries.ts';
import { badRequest } from '../context.ts';

/** Maximum instants of one backfill, so that a typing error cannot fill a database. */
const maxInstants = 1_000_000;

export interface Wish {
  readonly first: Date;
  readonly last: Date;
  readonly triggers?: readonly string[] | undefined;
}

interface Part extends NewPart {
  readonly schedule: Schedule;
}

/** Rejects unknown triggers, and ranges with more than `maxInstants`. */
export function planBackfill(triggers: readonly BackfillTrigger[], wish: Wish, nowMs: number): Part[] {
  const parts = chooseTriggers(triggers, wish.triggers).map((trigger) => planPart(trigger, wish, nowMs));
  const total = totalOf(parts);
  if (total > maxInstants) {
    const message = `the range holds ${total} instants; a backfill may have ${maxInstants}: split the range`;
    throw badRequest('body.last', message);
  }
  return parts;
}

function chooseTriggers(triggers: readonly BackfillTrigger[], names: readonly string[] | undefined): BackfillTrigger[] {
  const unknown = names?.findIndex((name) => !triggers.some((trigger) => trigger.name === name)) ?? -1;
  if (unknown >= 0) {
    const known = triggers.map((trigger) => trigger.name).join(', ') || 'none';
    throw badRequest(`body.triggers[${unknown}]`, `the job has no trigger ${names?.[unknown]}; its triggers: ${known}`);
  }
  return triggers.filter((trigger) => names?.includes(trigger.name) ?? true);
}

function planPart(trigger: BackfillTrigger, { first, last }: Wish, nowMs: number): Part {
  const schedule = compileSchedule(specOf(trigger));
  const fromMs = Math.max(first.getTime(), schedule.startMs);
  const toMs = Math.max(fromMs, Math.min(last.getTime(), nowMs - trigger.offset_ms, schedule.endMs - 1) + 1);
  const instants = countInstants(schedule, fromMs, toMs);
  return {
    trigger,
    schedule,
    fromMs,
    toMs,
    instants,
    pieces: instants === 0 ? 0 : countPieces(schedule, fromMs, toMs),
  };
}

export function totalOf(parts: readonly NewPart[]): number {
  return parts.reduce((sum, part) => sum + part.instants, 0);
}

export interface Preview {
  readonly total: number;
  /** The earliest instants in order, each with the triggers that would fire for it. */
  readonly items: readonly { readonly instant: string; readonly triggers: readonly string[] }[];
  /** The first instant that is not listed; null: all are listed. */
  readonly next: string | null;
}

export async function previewBackfill(
  db: Db,
  parts: readonly Part[],
  { limit, onlyMissing }: { limit: number; onlyMissing: boolean },
): Promise<Preview> {
  const byInstant = new Map<number, string[]>();
  let total = 0;
  for (const part of parts) {
    const { count, instants } = onlyMissing ? await missingOf(db, part, limit + 1) : earliestOf(part, limit + 1);
    total += count;
    for (const ms of instants) byInstant.set(ms, [...(byInstant.get(ms) ?? []), part.trigger.name]);
  }
  const listed = [...byInstant].sort(([a], [b]) => a - b).map(([ms, triggers]) => ({ instant: isoOf(ms), triggers }));
  return { total, items: listed.slice(0, limit), next: listed[limit]?.instant ?? null };
}

interface Listed {
  readonly count: number;
  /** The earliest `most` of them. */
  readonly instants: readonly number[];
}

function earliestOf({ schedule, fromMs, toMs, instants: count }: Part, most: number): Listed {
  const instants: number[] = [];
  for (const ms of instantsBetween(schedule, fromMs, toMs)) if (instants.push(ms) === most) break;
  return { count, instants };
}

const batchSize = 5_000;

/** Finds the instants that have not fired. Looks each one up, in batches, so earlier edits of the trigger do not matter. */
async function missingOf(db: Db, part: Part, most: number): Promise<Listed> {
  const instants: number[] = [];
  let count = 0;
  const checkBatch = async (batch: readonly number[]): Promise<void> => {
    const missing = await findUnfired(db, part.trigger.id, batch);
    count += missing.length;
    instants.push(...missing.slice(0, most - instants.length));
  };
  let batch: number[] = [];
  for (const ms of instantsBetween(part.schedule, part.fromMs, part.toMs)) {
    if (batch.push(ms) < batchSize) continue;
    await checkBatch(batch);
    batch = [];
  }
  await checkBatch(batch);
  return { count, instants };
}

const isoOf = (ms: number): string => new Date(ms).toISOString();
