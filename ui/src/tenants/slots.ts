/** Slots in order: who has one, by kind, and who stands in line; and what another limit would mean. */
import type { Slot, Slots } from './use-tenants.ts';

interface Standing {
  readonly holders: readonly Slot[];
  /** The first first. */
  readonly line: readonly Slot[];
}

export function standInLine(slots: readonly Slot[]): Standing {
  return {
    holders: slots.filter(({ position }) => position === null),
    line: slots
      .filter(({ position }) => position !== null)
      .toSorted((one, other) => (one.position ?? 0) - (other.position ?? 0)),
  };
}

const kinds = [
  { kind: 'launcher', name: 'launcher', state: 'skipped' },
  { kind: 'scheduler', name: 'schedulers', state: 'success' },
  { kind: 'housekeeping', name: 'housekeeping', state: 'running' },
] as const;

/** How many of each kind are held, but those that are lent: they take none. The colours are those of a bar. */
export function partsOf(holders: readonly Slot[]) {
  return kinds.map(({ kind, name, state }) => ({
    name,
    state,
    count: holders.filter((slot) => slot.kind === kind && !slot.lent).length,
  }));
}

/** A limit that was typed. */
export function limitOf(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 10_000 ? Number(text) : undefined;
}

/** What another limit does, in a sentence. */
export function outlookOf({ items, taken, limit }: Slots, wanted: number): string {
  const { line } = standInLine(items);
  const places = (count: number) => (count === 1 ? '1 slot' : `${count} slots`);
  if (wanted < taken) {
    return `${places(taken)} are held: the newest schedulers go back to the line until ${wanted} are held.`;
  }
  const served = Math.min(line.length, wanted - taken);
  if (wanted > limit && served > 0) return `The first ${served} in line ${served === 1 ? 'is' : 'are'} served at once.`;
  return `${places(wanted - taken)} will be free. Nobody is stopped.`;
}
