/**
 * Errands on PostgreSQL: one row per errand, whose primary key makes it unique in every state. Each call is one statement, so
 * one commit, over a whole batch.
 *
 * Safety is the database's: a process may die between any two calls. The driver itself remembers only where its next acquire
 * begins (see claim-floor.ts).
 */
import type { Db } from '../kernel/sql.ts';
import { ClaimFloor } from '../postgres/claim-floor.ts';
import { errandLimits, type ErrandQueue, type Errands, errandTimes } from './contract.ts';
import {
  ackErrands,
  acquireErrands,
  beatErrands,
  countErrands,
  listPoisoned,
  nackErrands,
  nextDueErrand,
  noteErrandProgress,
  promoteErrands,
  pushErrands,
  readyDueErrands,
  reviveErrands,
  scrubErrands,
} from './queries.ts';

/** In a transaction (`Db` of one), the calls take part in it. Keep to the lock order: errands come late, by (queue, key). */
export function postgresErrands(db: Db): Errands {
  const acquire = makeAcquire(db);
  return {
    push: async (queue, wishes) => (wishes.length === 0 ? 0 : pushErrands(db, queue, wishes)),
    promote: async (queue, keys) => (keys.length === 0 ? 0 : promoteErrands(db, queue, keys)),
    due: (queue, now, most) => readyDueErrands(db, queue, new Date(now), most),
    nextDue: async (queue) => (await nextDueErrand(db, queue))?.getTime(),
    acquire,
    ack: (queue, worker, held) => stillHeld(held, () => ackErrands(db, queue, worker, held)),
    nack: (queue, worker, held) => stillHeld(held, () => nackErrands(db, queue, worker, held)),
    progress: (queue, worker, held) => stillHeld(held, () => noteErrandProgress(db, queue, worker, held)),
    async beat(worker, held, now) {
      const { unnamedMs } = errandTimes;
      const { mostLosses } = errandLimits;
      const lost = new Set(await beatErrands(db, worker, held, { at: new Date(now), unnamedMs, mostLosses }));
      return held.filter((_, i) => lost.has(i + 1));
    },
    scrub: (queue, silentBefore, mostLosses, lost = []) =>
      scrubErrands(db, queue, { silentBefore: new Date(silentBefore), mostLosses, lost }),
    poisoned: (queue) => listPoisoned(db, queue),
    revive: async (queue, keys) => (keys.length === 0 ? 0 : (await reviveErrands(db, queue, keys)).length),
    counts: (queue) => countErrands(db, queue),
  };
}

function makeAcquire(db: Db): Errands['acquire'] {
  const floors: Record<ErrandQueue, ClaimFloor<number>> = {
    main: new ClaimFloor<number>('errand'),
    aux: new ClaimFloor<number>('errand'),
  };
  return async (queue, worker, most, now) => {
    const floor = floors[queue];
    const startedMs = performance.now();
    const at = new Date(now);
    const { errands, firstId } = await acquireErrands(db, queue, { worker, most, at, floor: floor.current(startedMs) });
    const atMs = performance.now();
    floor.note(db, { atMs, tookMs: atMs - startedMs }, firstId);
    return errands;
  };
}

async function stillHeld(
  held: readonly { readonly key: string }[],
  write: () => Promise<number[] | null>,
): Promise<string[]> {
  if (held.length === 0) return [];
  const lost = new Set(await write());
  return held.flatMap(({ key }, i) => (lost.has(i + 1) ? [] : key));
}
