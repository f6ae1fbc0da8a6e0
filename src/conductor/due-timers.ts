/**
 * The near timers of one tenant: those that are due within a minute, of executions that this conductor drives.
 *
 * 1. They come from its own commits, and from the database: at the start, every 30 s, and when executions were taken over.
 * 2. A timer is never early by the clock that follows the database server's. It becomes a message to its execution, which decides
 *    whether the timer still counts.
 * 3. At most `perPass` are due at once, so that a burst does not hold up other messages.
 */
import type { TimerMark } from '../contract/flows.ts';
import type { FlowMessage } from '../contract/flow-messages.ts';
import { DueQueue } from '../kernel/queues/due-queue.ts';

export const timerLimits = {
  nearMs: 60_000,
  refreshMs: 30_000,
  perPass: 2_000,
  /** Timers in memory. Later ones are read when those are done. */
  held: 50_000,
} as const;

interface Due extends TimerMark {
  readonly id: string;
}

export class DueTimers {
  readonly #queue = new DueQueue<Due>();
  /** Timers that are due later than this are not held. */
  #horizonMs = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#queue.size;
  }

  /** When the next one is due; undefined: none is near. */
  get nextMs(): number | undefined {
    return this.#queue.peek()?.dueMs;
  }

  /** Whether some may be due soon that are not held. */
  isShort(nowMs: number): boolean {
    return this.#horizonMs < nowMs + timerLimits.refreshMs;
  }

  set(mark: TimerMark, nowMs: number): void {
    const id = idOf(mark);
    const isNear = mark.dueMs <= Math.min(nowMs + timerLimits.nearMs, this.#horizonMs);
    if (!isNear) return this.#queue.remove(id);
    if (this.#queue.size >= timerLimits.held) {
      this.#horizonMs = Math.min(this.#horizonMs, mark.dueMs - 1);
      return this.#queue.remove(id);
    }
    this.#queue.push({ ...mark, id });
  }

  clear(mark: Pick<TimerMark, 'execution' | 'name'>): void {
    this.#queue.remove(idOf(mark));
  }

  /** The first timers of the database, as many as were asked for at most. */
  refresh(marks: readonly TimerMark[], asked: number): void {
    const last = marks.at(-1);
    this.#horizonMs = last !== undefined && marks.length >= asked ? last.dueMs : Number.POSITIVE_INFINITY;
    for (const mark of marks) {
      const id = idOf(mark);
      // a commit may have set it anew since the database was read
      if ((this.#queue.get(id)?.generation ?? 0) < mark.generation) this.#queue.push({ ...mark, id });
    }
  }

  forgetAll(): void {
    for (const { id } of this.#queue.values()) this.#queue.remove(id);
    this.#horizonMs = Number.POSITIVE_INFINITY;
  }

  takeDue(nowMs: number): TimerMark[] {
    return this.#queue.popDue(nowMs, timerLimits.perPass);
  }
}

export function timerMessage({ execution, name, generation, dueMs }: TimerMark): FlowMessage {
  return {
    id: `timer/${name}/${generation}`,
    execution,
    bornMs: dueMs,
    point: 'timer',
    actor: null,
    body: { point: 'timer', name, generation },
  };
}

function idOf({ execution, name }: Pick<TimerMark, 'execution' | 'name'>): string {
  return `${execution}/${name}`;
}
