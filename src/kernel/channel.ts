/**
 * A bounded channel that is drained in batches, so that the cost per item falls as load rises.
 *
 * `send` waits while the channel is full. That slows a fast sender and bounds memory. `receive` waits for one item and then
 * takes all queued items, up to `max`.
 */
export class Channel<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  #receiver: (() => void) | undefined;
  readonly #senders: (() => void)[] = [];
  #closed = false;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  /** An item whose signal aborts before there is room is not sent. */
  async send(item: T, signal?: AbortSignal): Promise<void> {
    while (this.#items.length >= this.#capacity && !this.#closed && !signal?.aborted) await this.#room(signal);
    if (!signal?.aborted) this.#put(item);
  }

  async #room(signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        const place = this.#senders.indexOf(wake);
        if (place >= 0) this.#senders.splice(place, 1);
        resolve();
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.#senders.push(wake);
    });
  }

  /** Queues the item if there is room. For wake-ups: losing one does no harm, because another one is queued. */
  offer(item: T): boolean {
    if (this.#closed || this.#items.length >= this.#capacity) return false;
    this.#put(item);
    return true;
  }

  #put(item: T): void {
    if (this.#closed) return;
    this.#items.push(item);
    this.#wakeReceiver();
  }

  /** Returns one batch, or an empty one if the channel is closed or the signal aborts. One receiver at a time. */
  async receive(max: number, signal?: AbortSignal): Promise<T[]> {
    await this.arrival(signal);
    const batch = this.#items.splice(0, max);
    for (const resolve of this.#senders.splice(0, batch.length)) resolve();
    return batch;
  }

  /** Returns once an item is queued, the channel is closed, or the signal aborts. */
  async arrival(signal?: AbortSignal): Promise<void> {
    if (this.#items.length > 0 || this.#closed || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        signal?.removeEventListener('abort', wake);
        // the next receiver may be waiting by now
        if (this.#receiver === wake) this.#receiver = undefined;
        resolve();
      };
      signal?.addEventListener('abort', wake, { once: true });
      this.#receiver = wake;
    });
  }

  #wakeReceiver(): void {
    this.#receiver?.();
  }

  /** Accepts no more items. Queued items can still be received. */
  close(): void {
    this.#closed = true;
    this.#wakeReceiver();
    for (const resolve of this.#senders.splice(0)) resolve();
  }
}
