/** Which schedulers a host writes in a beat: those whose state has changed, and each of the others every three seconds. */
import type { SchedulerBeat } from './host-queries.ts';

/** Readers take a scheduler without a beat for gone after ten seconds. */
const everyMs = 3_000;

interface WrittenBeat {
  readonly text: string;
  readonly atMs: number;
}

export class BeatPace {
  #written: ReadonlyMap<string, WrittenBeat> = new Map();

  due(beats: readonly SchedulerBeat[], nowMs: number): SchedulerBeat[] {
    return beats.filter((beat) => {
      const last = this.#written.get(beat.id);
      return last === undefined || nowMs - last.atMs >= everyMs || last.text !== JSON.stringify(beat);
    });
  }

  /** Records that these beats are written. Entries older than two periods belong to schedulers that have ended: drop them. */
  noteWritten(beats: readonly SchedulerBeat[], nowMs: number): void {
    const fresh = [...this.#written].filter(([, { atMs }]) => nowMs - atMs < 2 * everyMs);
    const entries = beats.map((beat): [string, WrittenBeat] => [beat.id, { text: JSON.stringify(beat), atMs: nowMs }]);
    this.#written = new Map([...fresh, ...entries]);
  }
}
