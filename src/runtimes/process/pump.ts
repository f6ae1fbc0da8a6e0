/**
 * Carries a task's output from its pipe to the sink. It reads only while the sink accepts more, so that a task that prints faster
 * than its output can be stored is slowed down by its own full pipe.
 */
import { Socket } from 'node:net';
import type { Output } from '../contract.ts';

export class Pump {
  readonly #socket: Socket;
  #held = 0;
  /** Resolves when the pipe has ended: no process has its writing end open any more, or it was cut. */
  readonly #ended: Promise<void>;

  constructor(descriptor: number, output: Output) {
    const socket = new Socket({ fd: descriptor, readable: true, writable: false });
    this.#socket = socket;
    this.#ended = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => this.#pass(output.write('out', data)));
  }

  #pass(taken: Promise<void> | undefined): void {
    if (!taken) return;
    this.#held++;
    this.#socket.pause();
    const resume = (): void => {
      if (--this.#held === 0) this.#socket.resume();
    };
    taken.then(resume, resume);
  }

  /**
   * Waits for the end of the pipe after the task's main process has ended. A grandchild may hold it open for `lingerMs`, not counting
   * the time in which the sink accepted nothing, so that no output of the task itself is lost.
   */
  async drained(lingerMs: number): Promise<void> {
    const stepMs = Math.max(1, Math.ceil(lingerMs / 20));
    let left = lingerMs;
    const timer = setInterval(() => {
      if (this.#held > 0) return;
      left -= stepMs;
      if (left <= 0) this.#socket.destroy();
    }, stepMs);
    await this.#ended;
    clearInterval(timer);
  }
}
