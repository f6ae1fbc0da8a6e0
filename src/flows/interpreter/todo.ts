/**
 * Inner messages that are still to be worked off. Closings go first: whatever is being cancelled is closed down to its last step before
 * any other step begins. All others keep their order.
 */
import type { Inner } from './state.ts';

export class Todo {
  #closings: Inner[] = [];
  #others: Inner[] = [];

  add(message: Inner): void {
    (message.do === 'close' ? this.#closings : this.#others).push(message);
  }

  /** What an earlier run has left goes before what this one has added. */
  addLeft(left: readonly Inner[]): void {
    const added = [...this.#closings, ...this.#others];
    this.clear();
    for (const message of left) this.add(message);
    for (const message of added) this.add(message);
  }

  next(): Inner | undefined {
    return this.#closings.shift() ?? this.#others.shift();
  }

  /** Whether a node has not begun yet. */
  isEntering(nid: string): boolean {
    return hasEnter(this.#others, nid);
  }

  all(): Inner[] {
    return [...this.#closings, ...this.#others];
  }

  clear(): void {
    this.#closings = [];
    this.#others = [];
  }
}

export function hasEnter(messages: readonly Inner[], nid: string): boolean {
  return messages.some((message) => message.do === 'enter' && message.nid === nid);
}
