/**
 * The acknowledgements of one reader that are under way. A full batch may be followed by the next one before its acknowledgement
 * is committed; every other write about the reader waits for `settle` first, because it names the position that the
 * acknowledgements lead to.
 */
import type { Done, DoneResult, HeldReader } from '../store.ts';
import type { GroupedWrites } from './grouped-writes.ts';

/** The maximum of accepted batches without an acknowledgement. After a crash, these are sent again. */
const maxUnacked = 16;

/** `held`: all are stored. `moved`: the position of the reader has changed, load it again. `over`: this courier does not hold it. */
export type Standing = 'held' | 'moved' | 'over';

export class AckWindow {
  readonly #acks: GroupedWrites<Done, DoneResult | undefined>;
  readonly #held: HeldReader;
  #unacked: { readonly to: number; readonly result: Promise<DoneResult | undefined | 'failed'> }[] = [];
  #isOver = false;

  constructor(acks: GroupedWrites<Done, DoneResult | undefined>, held: HeldReader) {
    this.#acks = acks;
    this.#held = held;
  }

  get isFull(): boolean {
    return this.#unacked.length >= maxUnacked;
  }

  add(done: Omit<Done, keyof HeldReader>): void {
    const result = this.#acks.add({ ...this.#held, ...done }).catch(() => 'failed' as const);
    this.#unacked.push({ to: done.to, result });
  }

  /** Waits for all. */
  async settle(): Promise<Standing> {
    let standing: Standing = 'held';
    if (this.#unacked.length > 0) this.#acks.hurry();
    for (const { to, result } of this.#unacked.splice(0)) {
      const answer = await result;
      if (answer === 'failed') standing = 'moved';
      else if (answer === undefined || !answer.isHeld) this.#isOver = true;
      else if (answer.pos < to) standing = 'moved';
    }
    return this.#isOver ? 'over' : standing;
  }
}
