/** Slots in order: those that are held, by kind, and those that wait; and the effect of another limit. */
import type { Slot, Slots } from '../tenants/use-tenants.ts';

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
] as const;

/** How many of each kind are held. The colours are those of a bar. */
export function partsOf(holders: readonly Slot[]) {
  return kinds.map(({ kind, name, state }) => ({
    name,
    state,
    count: holders.filter((slot) => slot.kind === kind).length,
  }));
}

/** A limit that was typed. */
export function limitOf(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 10_000 ? Number(text) : undefined;
}

/** The effect of another limit, as a sentence. */
export function outlookOf(slots: Slots, wanted: number): string {
  const { items, taken, limit } = slots;
  const stopped = stoppedBy(slots, wanted);
  if (stopped.length > 0) {
    const [them, their] = stopped.length === 1 ? ['it', 'its tenant'] : ['them', 'their tenants'];
    return `Stops ${count(stopped.length, 'scheduler')}, the newest: ${some(stopped)}. Nothing of ${their} fires until a higher limit starts ${them} again, in the order of the line.`;
  }
  if (wanted < taken) return 'Nobody is stopped, but nobody gets a slot until fewer are held.';
  const served = standInLine(items).line.slice(0, wanted - taken);
  if (wanted <= limit || served.length === 0)
    return `${count(wanted - taken, 'slot')} will be free. Nobody is stopped.`;
  return `Starts ${served.length} of those in line, in its order: ${some(served.map(({ tenant }) => tenant ?? '–'))}.`;
}

/** The tenants whose schedulers a limit stops, as the launcher chooses them: the newest. The launcher keeps its own slot. */
export function stoppedBy({ items }: Slots, limit: number): readonly string[] {
  const lasting = standInLine(items).holders;
  return lasting
    .filter(({ kind }) => kind === 'scheduler')
    .toSorted((one, other) => Date.parse(other.since) - Date.parse(one.since))
    .slice(0, Math.max(0, lasting.length - limit))
    .map(({ tenant }) => tenant ?? '–');
}

function count(number: number, noun: string): string {
  return number === 1 ? `1 ${noun}` : `${number} ${noun}s`;
}

const mostNamed = 10;

function some(names: readonly string[]): string {
  const more = names.length - mostNamed;
  return names.slice(0, mostNamed).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
