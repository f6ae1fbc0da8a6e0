/** Rates of turns, and the processor time that each part used. On a busy machine processor time says more than the rate. */
import { cpuOfTrees } from './processes.ts';

export interface Turn {
  readonly runs: number;
  readonly perSecond: number;
}

export class Tally {
  readonly rates: number[] = [];
  readonly #trees: Readonly<Record<string, readonly number[]>>;
  readonly #seconds = new Map<string, number>();
  #runs = 0;

  /** `trees`: the root processes of each part; their descendants count as well. */
  constructor(trees: Readonly<Record<string, readonly number[]>>) {
    this.#trees = trees;
  }

  async add(turn: () => Promise<Turn>): Promise<void> {
    const before = await this.#used();
    const { runs, perSecond } = await turn();
    for (const [part, seconds] of await this.#used()) {
      this.#seconds.set(part, (this.#seconds.get(part) ?? 0) + seconds - (before.get(part) ?? 0));
    }
    this.#runs += runs;
    this.rates.push(perSecond);
  }

  /** Milliseconds per 1,000 runs, by part. */
  cpu(): Record<string, number> {
    return Object.fromEntries([...this.#seconds].map(([part, seconds]) => [part, (seconds / this.#runs) * 1e6]));
  }

  async #used(): Promise<Map<string, number>> {
    const used = new Map<string, number>();
    for (const [part, pids] of Object.entries(this.#trees)) {
      used.set(
        part,
        (await cpuOfTrees(pids)).reduce((sum, cpu) => sum + cpu, 0),
      );
    }
    const { user, system } = process.cpuUsage();
    return used.set('bench', (user + system) / 1e6);
  }
}
