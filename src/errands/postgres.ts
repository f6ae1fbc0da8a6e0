/**
 * Errands on PostgreSQL: one row per errand, whose primary key makes it unique in every state, and one row per acquire, which names
 * the errands that it took. Each call is one statement, so one commit, over a whole batch; an ack has a second one for errands that
 * were pushed meanwhile.
 *
 * Safety is the database's: a process may die between any two calls. The driver itself remembers only where its next acquire
 * begins (see ready-floor.ts).
 */
import type { Db } from '../kernel/sql.ts';
import { errandLimits, type ErrandQueue, type Errands, errandTimes, type HeldErrand } from './contract.ts';
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
  renewErrands,
  reviveErrands,
  scrubErrands,
} from './queries.ts';
import { ReadyFloor } from './ready-floor.ts';

/** In a transaction (`Db` of one), the calls take part in it. Keep to the lock order: errands come late, by (queue, key). */
export function postgresErrands(db: Db): Errands {
  const acquire = makeAcquire(db);
  return {
    push: async (queue, wishes) => (wishes.length === 0 ? 0 : pushErrands(db, queue, wishes)),
    promote: async (queue, keys) => (keys.length === 0 ? 0 : promoteErrands(db, queue, keys)),
    due: (queue, now, most) => readyDueErrands(db, queue, new Date(now), most),
    nextDue: async (queue) => (await nextDueErrand(db, queue))?.getTime(),
    acquire,
    ack: (queue, worker, held) => stillHeld(held, () => ack(db, queue, worker, held)),
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
  const floors: Record<ErrandQueue, ReadyFloor> = { main: new ReadyFloor(), aux: new ReadyFloor() };
  return async (queue, worker, most, now) => {
    const { start, note } = floors[queue].begin(performance.now());
    const { errands, sight } = await acquireErrands(db, queue, { worker, most, at: new Date(now), start });
    note(sight, performance.now());
    return errands;
  };
}

/** Those that were pushed while they were held are made ready by a second statement: until then the worker holds them. */
async function ack(db: Db, queue: ErrandQueue, worker: string, held: readonly HeldErrand[]): Promise<number[]> {
  const { lost, pushed } = await ackErrands(db, queue, worker, held);
  const again = (pushed ?? []).flatMap((n) => held[n - 1] ?? []);
  if (again.length === 0) return [...(lost ?? [])];
  const gone = (await renewErrands(db, queue, worker, again)) ?? [];
  return [...(lost ?? []), ...gone.flatMap((n) => pushed?.[n - 1] ?? [])];
}

async function stillHeld(
  held: readonly { readonly key: string }[],
  write: () => Promise<number[] | null>,
): Promise<string[]> {
  if (held.length === 0) return [];
  const lost = new Set(await write());
  return held.flatMap(({ key }, i) => (lost.has(i + 1) ? [] : key));
}
