/**
 * The model of all tokens' counts (I2). For every token that a commit touches, arrivals, consumed counts and runs must
 * balance. No token that could run may be left behind.
 */
import type { Arrival, Graph } from './graph.ts';
import { type Change, numberOf, type Row, textOf, timeOf } from './journal.ts';
import { type Fault, formatPlace, type Names, placeOf } from './steps.ts';

/** A count that arrives, with its cause. */
export type Caused = Arrival & { readonly cause: string };

interface Token {
  readonly task: string;
  readonly instantMs: number;
  count: number;
  /** Its task was removed while it was full. If the task comes back, the token waits for its next count. */
  dropped: boolean;
}

/** The changes of one commit that concern tokens. */
export interface TokenChanges {
  readonly arrivals: readonly Caused[];
  /** Runs of the first attempt. */
  readonly made: readonly Row[];
  readonly tokens: readonly Change[];
  /** Places that a user activated. */
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

  /** Marks the tokens of removed tasks. */
  drop(): void {
    for (const token of this.#tokens.values()) if (this.#graph.task(token.task).removed) token.dropped = true;
  }

  findLeftBehind(): string[] {
    return [...this.#tokens.values()]
      .filter(({ task, count, dropped }) => {
        const { threshold, paused } = this.#graph.task(task);
        return !paused && !dropped && count >= threshold;
      })
      .map((token) => `${formatPlace(token)} has ${token.count} counts and did not run (I2)`);
  }

  judge(changes: TokenChanges, fault: Fault): void {
    const touched = this.#touched(changes);
    for (const place of changes.activated) if (!touched.has(place)) fault(`${place} was activated and did not run`);
    for (const [place, at] of touched) {
      const token = this.#tokens.get(place) ?? { task: at.task, instantMs: at.instantMs, count: 0, dropped: false };
      this.#tokens.set(place, token);
      const releases = at.arrivals.length > 0 || at.made.length > 0;
      const runs = changes.activated.has(place) ? activate(token) : this.#count(token, at.arrivals.length, releases);
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

  /** Adds arrivals and consumes full thresholds; returns the number of runs. Tokens of a paused task only collect. */
  #count(token: Token, arrived: number, releases: boolean): number {
    const { threshold, paused } = this.#graph.task(token.task);
    token.count += arrived;
    if (paused || !releases) return 0;
    const runs = Math.floor(token.count / threshold);
    token.count %= threshold;
    token.dropped = false;
    return runs;
  }
}

/** An activated token runs once and starts again from 0. */
function activate(token: Token): number {
  token.count = 0;
  token.dropped = false;
  return 1;
}

function compare(token: Token, { arrivals, made, written }: Touched, runs: number, fault: Fault): void {
  if (made.length !== runs) fault(`${formatPlace(token)} made ${made.length} runs instead of ${runs} (I2)`);
  const causes = new Set(arrivals.map((arrival) => arrival.cause));
  if (causes.size > 0 && !made.every((row) => causes.has(textOf(row, 'cause')))) {
    fault(`${formatPlace(token)} ran for a cause that did not count for it`);
  }
  if (written === undefined) {
    if (arrivals.length + made.length > 0) fault(`${formatPlace(token)} was not written (I2)`);
  } else if (numberOf(written, 'count') !== token.count) {
    fault(`${formatPlace(token)} was left with ${numberOf(written, 'count')} instead of ${token.count} (I2)`);
  }
}
