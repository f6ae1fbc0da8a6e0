/** Which schedulers a host tells of in a beat: those of which there is news, and of the others now and then. */
import type { SchedulerBeat } from './host-queries.ts';

/** Whoever reads of a scheduler takes it for gone after ten seconds. */
const everyMs = 3_000;

interface Told {
  readonly text: string;
  readonly atMs: number;
}

export class BeatPace {
  #told: ReadonlyMap<string, Told> = new Map();

  due(beats: readonly SchedulerBeat[], nowMs: number): SchedulerBeat[] {
    return beats.filter((beat) => {
      const told = this.#told.get(beat.id);
      return told === undefined || nowMs - told.atMs >= everyMs || told.text !== JSON.stringify(beat);
    });
  }

  /** These are written. Those that were told long ago are forgotten, for they would have been due. */
  told(beats: readonly SchedulerBeat[], nowMs: number): void {
    const fresh = [...this.#told].filter(([, { atMs }]) => nowMs - atMs < 2 * everyMs);
    const written = beats.map((beat): [string, Told] => [beat.id, { text: JSON.stringify(beat), atMs: nowMs }]);
    this.#told = new Map([...fresh, ...written]);
  }
}
