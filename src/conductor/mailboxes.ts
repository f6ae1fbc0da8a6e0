/**
 * The mailboxes of one tenant, and the lines in which they wait: for their execution, and for the tenant's turn.
 *
 * A mailbox exists while it has letters or its execution is in memory. It is in one line at a time, which its phase names.
 */
import type { Execution } from '../contract/flows.ts';
import { type Letter, type LetterEnd, Mailbox, type Phase } from './mailbox.ts';
import type { Kept, Memory } from './memory.ts';

/** What a mailbox itself takes. */
const baseBytes = 500;

export class Mailboxes {
  readonly #memory: Memory;
  readonly #byId = new Map<string, Mailbox>();
  readonly #kept = new Map<Mailbox, Kept>();
  readonly #lines = { absent: new Set<Mailbox>(), ready: new Set<Mailbox>() };
  #letters = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** Letters that wait or are away. */
  get letters(): number {
    return this.#letters;
  }

  get(id: string): Mailbox | undefined {
    return this.#byId.get(id);
  }

  holds(executionId: string, messageId: string): boolean {
    return this.#byId.get(executionId)?.holds(messageId) === true;
  }

  count(phase: 'absent' | 'ready'): number {
    return this.#lines[phase].size;
  }

  /** Mailboxes by phase. */
  phases(): Readonly<Partial<Record<Phase, number>>> {
    const counts: Partial<Record<Phase, number>> = {};
    for (const { phase } of this.#byId.values()) counts[phase] = (counts[phase] ?? 0) + 1;
    return counts;
  }

  /** `isNew`: the message is a launch whose execution does not exist yet. */
  post(letter: Letter, isNew: boolean): Mailbox {
    const { execution: id } = letter.message;
    let box = this.#byId.get(id);
    if (box === undefined) {
      box = new Mailbox(id);
      box.isNew = isNew;
      this.#byId.set(id, box);
    }
    this.#letters += 1;
    box.add({
      message: letter.message,
      end: (end) => {
        this.#letters -= 1;
        letter.end(end);
      },
    });
    if (box.phase === 'resting') this.#awaken(box);
    return box;
  }

  /** Takes back letters of this message that still wait. Returns their number. */
  withdraw({ message }: Letter): number {
    const box = this.#byId.get(message.execution);
    if (box === undefined) return 0;
    const mine = box.waiting.filter((letter) => letter.message === message);
    for (const letter of mine) box.withdraw(letter);
    this.#letters -= mine.length;
    if (box.isEmpty && (box.phase === 'absent' || box.phase === 'ready')) this.#settle(box);
    return mine.length;
  }

  /** The first of a line, which leave it. */
  take(phase: 'absent' | 'ready', most: number): Mailbox[] {
    const line = this.#lines[phase];
    const taken: Mailbox[] = [];
    for (const box of line) {
      if (taken.length >= most) break;
      taken.push(box);
      line.delete(box);
    }
    return taken;
  }

  /** An execution was read, or committed: its letters go on. */
  load(box: Mailbox, execution: Execution): void {
    box.execution = execution;
    box.isNew = false;
    this.#memory.use(this.#keptOf(box), execution.bytes + baseBytes);
    this.#settle(box);
  }

  /** The execution in memory is not the newest, or may not be. It is read again when a letter needs it. */
  forget(box: Mailbox): void {
    box.execution = undefined;
    this.#memory.drop(this.#keptOf(box));
    this.#settle(box);
  }

  /** Its line after something has changed. */
  #settle(box: Mailbox): void {
    this.#leaveLines(box);
    box.phase = 'resting';
    if (box.waiting.length > 0) this.#awaken(box);
    else if (box.execution === undefined) this.#remove(box);
  }

  /** Nobody processes its letters here. */
  endAll(box: Mailbox, end: LetterEnd): void {
    box.endAway(() => end);
    box.endWaiting(end);
    box.isNew = false;
    this.forget(box);
  }

  /** All executions in memory may be outdated. Those that are away are judged by their commits. */
  forgetAll(): void {
    for (const box of this.#byId.values())
      if (box.phase === 'resting' || box.phase === 'ready' || box.phase === 'absent') this.forget(box);
  }

  all(): Mailbox[] {
    return [...this.#byId.values()];
  }

  /** Drops all: their tenant is closed. */
  clear(): void {
    for (const kept of this.#kept.values()) this.#memory.drop(kept);
    this.#kept.clear();
    this.#byId.clear();
    this.#lines.absent.clear();
    this.#lines.ready.clear();
  }

  #awaken(box: Mailbox): void {
    const phase = box.execution === undefined ? 'absent' : 'ready';
    box.phase = phase;
    this.#lines[phase].add(box);
  }

  #leaveLines(box: Mailbox): void {
    this.#lines.absent.delete(box);
    this.#lines.ready.delete(box);
  }

  #remove(box: Mailbox): void {
    this.#leaveLines(box);
    this.#memory.drop(this.#keptOf(box));
    this.#kept.delete(box);
    if (this.#byId.get(box.id) === box) this.#byId.delete(box.id);
  }

  #keptOf(box: Mailbox): Kept {
    const known = this.#kept.get(box);
    if (known !== undefined) return known;
    const kept: Kept = {
      release: () => {
        if (box.phase !== 'resting') return false;
        box.execution = undefined;
        this.#kept.delete(box);
        if (this.#byId.get(box.id) === box) this.#byId.delete(box.id);
        return true;
      },
    };
    this.#kept.set(box, kept);
    return kept;
  }
}
