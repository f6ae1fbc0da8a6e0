/**
 * Divides long work of this process into slices, between which other work goes on:
 *
 *     const slices = new Slices();
 *     for (const item of items) {
 *       work(item);
 *       if (slices.isOver) await slices.pause();
 *     }
 */
import { setImmediate } from 'node:timers/promises';

/** Milliseconds. Others wait for one slice of each task that is under way, several times as long on a busy machine. */
const sliceMs = 5;

export class Slices {
  #endMs = performance.now() + sliceMs;

  get isOver(): boolean {
    return performance.now() >= this.#endMs;
  }

  async pause(): Promise<void> {
    await setImmediate();
    this.#endMs = performance.now() + sliceMs;
  }
}
