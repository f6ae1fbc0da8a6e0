/**
 * The beat of a worker: every two seconds, while something is held, it names all of it in one statement. What the answer says is
 * lost is marked as lost, so that its work ends. Nothing is sent while nothing is held.
 *
 * It stops after the services that hold errands, because what is given back late must still be held.
 */
import { Bell } from '../kernel/bell.ts';
import { loop, pause, type Service } from '../kernel/service.ts';
import { runningTime, type Time } from '../kernel/time.ts';
import { type Errands, errandTimes, type NamedErrand } from './contract.ts';
import type { HeldErrands } from './held.ts';

export interface BeatOptions {
  readonly errands: Pick<Errands, 'beat'>;
  readonly worker: string;
  readonly held: HeldErrands;
  readonly time: Time;
  readonly onError: (error: unknown) => void;
  readonly onLost?: (lost: readonly NamedErrand[]) => void;
  readonly beatMs?: number;
}

/** A bell rings when something is held; this is only the longest sleep. */
const idleMs = 60_000;

export class ErrandBeat {
  readonly service: Service;
  readonly #options: BeatOptions;
  readonly #bell = new Bell(runningTime);

  constructor(options: BeatOptions) {
    this.#options = options;
    const beatMs = options.beatMs ?? errandTimes.beatMs;
    options.held.onFirst(() => this.#bell.ring());
    const pass = async (signal: AbortSignal): Promise<void> => {
      if (options.held.size === 0) await this.#bell.wait(idleMs, signal);
      if (options.held.size > 0) await pause(beatMs, signal);
      if (!signal.aborted) await this.beat();
    };
    // a failed beat is repeated sooner than the next is due
    const { start, stop } = loop('errand beat', pass, options.onError, () => beatMs / 4);
    this.service = { name: 'errand beat', start, stop };
  }

  /** Names what is held now. */
  async beat(): Promise<void> {
    const { errands, worker, held, time, onLost } = this.#options;
    const named = held.list();
    if (named.length === 0) return;
    const lost = await errands.beat(worker, named, time.now());
    const holds = lost.flatMap((errand) => held.find(errand) ?? []);
    for (const hold of holds) hold.lose();
    const gone = holds.filter(({ isLost }) => isLost);
    if (gone.length > 0) onLost?.(gone);
  }
}
