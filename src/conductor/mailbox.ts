/**
 * The state of one execution in memory: the execution, and the messages that wait for it.
 *
 * - `resting`: no message. A letter enters `ready` if the execution is in memory, otherwise `absent`.
 * - `absent`: it is to be fetched, or, for a new launch, to be made.
 * - `fetching`: the statement is under way.
 * - `ready`: its letters wait for the tenant's turn.
 * - `away`: the results of some letters are in a commit. New letters wait. A won commit leads to `ready` or `resting`.
 * - `pausing`: a commit was lost or has failed. It is fetched again after a pause.
 */
import type { Execution } from '../contract/flows.ts';
import type { FlowMessage } from '../contract/flow-messages.ts';

/** What became of a message. */
export type LetterEnd =
  | { readonly kind: 'committed' }
  | { readonly kind: 'known'; readonly execution: string }
  | { readonly kind: 'refused'; readonly code: string; readonly detail: string }
  | { readonly kind: 'gone' }
  /** This conductor does not process it: a message that exists nowhere else has to be stored, for this owner. */
  | { readonly kind: 'left'; readonly owner: string | null };

/** A message on its way through this conductor. */
export interface Letter {
  readonly message: FlowMessage;
  /** Called once. */
  readonly end: (end: LetterEnd) => void;
}

export type Phase = 'resting' | 'absent' | 'fetching' | 'ready' | 'away' | 'pausing';

export class Mailbox {
  readonly id: string;
  phase: Phase = 'resting';
  execution: Execution | undefined;
  /** The oldest first. */
  readonly waiting: Letter[] = [];
  /** Letters whose results are in a commit. */
  away: readonly Letter[] = [];
  /** Ids of messages that wait or are away, so that a message from the inbox is not taken twice. */
  readonly #ids = new Map<string, number>();
  /** The launch has not been seen in the database: the execution is made from it. */
  isNew = false;
  /** Commits lost or failed since the last success. */
  failures = 0;
  /** Letters in the next commit. It is 1 after the database has refused several together. */
  maxLetters = Number.POSITIVE_INFINITY;

  constructor(id: string) {
    this.id = id;
  }

  get isEmpty(): boolean {
    return this.waiting.length === 0 && this.away.length === 0;
  }

  holds(messageId: string): boolean {
    return this.#ids.has(messageId);
  }

  add(letter: Letter): void {
    const { id } = letter.message;
    this.waiting.push(letter);
    this.#ids.set(id, (this.#ids.get(id) ?? 0) + 1);
  }

  /** The first letters go away. */
  send(count: number): void {
    this.away = this.waiting.splice(0, count);
    this.phase = 'away';
  }

  /** The letters that were away wait again, before the others. */
  bringBack(): void {
    this.waiting.unshift(...this.away);
    this.away = [];
  }

  /** Ends the letters that were away. */
  endAway(endOf: (index: number) => LetterEnd): void {
    const ended = this.away;
    this.away = [];
    for (const [i, letter] of ended.entries()) this.#end(letter, endOf(i));
  }

  endWaiting(end: LetterEnd): void {
    for (const letter of this.waiting.splice(0)) this.#end(letter, end);
  }

  /** Takes a letter back that still waits. Returns whether it did. */
  withdraw(letter: Letter): boolean {
    const place = this.waiting.indexOf(letter);
    if (place < 0) return false;
    this.waiting.splice(place, 1);
    this.#forget(letter);
    return true;
  }

  #end(letter: Letter, end: LetterEnd): void {
    this.#forget(letter);
    letter.end(end);
  }

  #forget({ message: { id } }: Letter): void {
    const left = (this.#ids.get(id) ?? 1) - 1;
    if (left === 0) this.#ids.delete(id);
    else this.#ids.set(id, left);
  }
}
