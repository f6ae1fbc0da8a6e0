/**
 * The counts of all tokens as they should be (I2): what arrives, what is taken off and what runs is in balance for every
 * token that a commit touches, and no token that could run is left behind.
 */
import type { Arrival, Graph } from './graph.ts';
import { type Change, numberOf, type Row, textOf, timeOf } from './journal.ts';
import { type Fault, type Names, placeOf, tell } from './steps.ts';

/** A count that arrives, and what made it. */
export type Caused = Arrival & { readonly cause: string };

interface Token {
  readonly task: string;
  readonly instantMs: number;
  count: number;
  /** Its task was taken out while it was full: should the task come back, it waits for its next count. */
  dropped: boolean;
}

/** What one commit did about tokens. */
export interface TokenChanges {
  readonly arrivals: readonly Caused[];
  /** Runs of the first attempt. */
  readonly made: readonly Row[];
  readonly tokens: readonly Change[];
  /** Places that somebody activated by hand. */
  readonly activated: ReadonlySet<string>;
}

interface Touched {
  readonly task: string;
  readonly instantMs: number;
  readonly arrivals: Caused[];
  readonly made: Row[];
  written: Row | undefined;
}

export class TokenBook {
  readonly #graph: Graph;
  readonly #names: Names;
  readonly #tokens = new Map<string, Token>();

  constructor(graph: Graph, names: Names) {
    this.#graph = graph;
    this.#names = names;
  }

  clear(isCleared: (token: Token) => boolean): void {
    for (const token of this.#tokens.values()) if (isCleared(token)) token.count = 0;
  }

  /** Tasks were taken out. */
  drop(): void {
    for (const token of this.#tokens.values()) if (this.#graph.task(token.task).removed) token.dropped = true;
  }

  leftBehind(): string[] {
    return [...this.#tokens.values()]
      .filter(({ task, count, dropped }) => {
        const { threshold, paused } = this.#graph.task(task);
        return !paused && !dropped && count >= threshold;
      })
      .map((token) => `${tell(token)} has ${token.count} counts and did not run (I2)`);
  }

  judge(changes: TokenChanges, fault: Fault): void {
    const touched = this.#touched(changes);
    for (const place of changes.activated) if (!touched.has(place)) fault(`${place} was activated and did not run`);
    for (const [place, at] of touched) {
      const token = this.#tokens.get(place) ?? { task: at.task, instantMs: at.instantMs, count: 0, dropped: false };
      this.#tokens.set(place, token);
      const looks = at.arrivals.length > 0 || at.made.length > 0;
      const runs = changes.activated.has(place) ? activate(token) : this.#count(token, at.arrivals.length, looks);
      compare(token, at, runs, fault);
    }
  }

  #touched({ arrivals, made, tokens }: TokenChanges): Map<string, Touched> {
    const touched = new Map<string, Touched>();
    const at = (task: string, instantMs: number): Touched => {
      const place = placeOf(task, instantMs);
      const known = touched.get(place) ?? { task, instantMs, arrivals: [], made: [], written: undefined };
      touched.set(place, known);
      return known;
    };
    const atRow = (row: Row): Touched => at(this.#names.get(textOf(row, 'task_id')) ?? '', timeOf(row, 'instant'));
    for (const arrival of arrivals) at(arrival.task, arrival.instantMs).arrivals.push(arrival);
    for (const row of made) atRow(row).made.push(row);
    for (const { after } of tokens) if (after) atRow(after).written = after;
    return touched;
  }

  /** Counts up, and takes off what is released; answers how many runs that makes. A paused task's tokens only collect. */
  #count(token: Token, arrived: number, looks: boolean): number {
    const { threshold, paused } = this.#graph.task(token.task);
    token.count += arrived;
    if (paused || !looks) return 0;
    const runs = Math.floor(token.count / threshold);
    token.count %= threshold;
    token.dropped = false;
    return runs;
  }
}

/** A token that is activated starts again from nothing, as if it had been full. */
function activate(token: Token): number {
  token.count = 0;
  token.dropped = false;
  return 1;
}

function compare(token: Token, { arrivals, made, written }: Touched, runs: number, fault: Fault): void {
  if (made.length !== runs) fault(`${tell(token)} made ${made.length} runs instead of ${runs} (I2)`);
  const causes = new Set(arrivals.map((arrival) => arrival.cause));
  if (causes.size > 0 && !made.every((row) => causes.has(textOf(row, 'cause')))) {
    fault(`${tell(token)} ran by a cause that did not count for it`);
  }
  if (written === undefined) {
    if (arrivals.length + made.length > 0) fault(`${tell(token)} was not written (I2)`);
  } else if (numberOf(written, 'count') !== token.count) {
    fault(`${tell(token)} was left with ${numberOf(written, 'count')} instead of ${token.count} (I2)`);
  }
}
