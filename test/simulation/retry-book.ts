/** The model of waiting retries: a failed attempt adds one; it goes when it is due or cancelled. */
import type { FinalState, ModelTask } from './graph.ts';
import { type Change, numberOf, type Row, textOf, timeOf } from './journal.ts';
import { type Fault, formatPlace } from './steps.ts';

interface ModelRetry {
  readonly task: string;
  readonly instantMs: number;
  readonly attempt: number;
  readonly priority: string;
  readonly dueMs: number;
  readonly phase: 'waiting';
}

interface Attempt {
  readonly id: string;
  readonly task: string;
  readonly instantMs: number;
  readonly attempt: number;
  readonly priority: string;
}

export class RetryBook {
  readonly #retries = new Map<string, ModelRetry>();

  findLeftBehind(): string[] {
    return Array.from(this.#retries.values(), (retry) => `a retry of ${formatPlace(retry)} was left behind`);
  }

  has(matches: (retry: ModelRetry) => boolean): boolean {
    return [...this.#retries.values()].some(matches);
  }

  callOff(isCalledOff: (retry: ModelRetry, run: string) => boolean): void {
    for (const [run, retry] of this.#retries) if (isCalledOff(retry, run)) this.#retries.delete(run);
  }

  /** Returns whether a retry must follow this end; if so, checks that it was recorded for the right time. */
  checkRetry(
    { run, state, atMs }: { run: Attempt; state: FinalState; atMs: number },
    { retry, removed }: ModelTask,
    changes: readonly Change[],
    fault: Fault,
  ): boolean {
    const again = retry !== undefined && !removed && retry.on.includes(state) && run.attempt < retry.maxAttempts;
    const noted = changes.find(({ after }) => after !== undefined && textOf(after, 'run_id') === run.id)?.after;
    if (again !== (noted !== undefined)) {
      fault(`${formatPlace(run)} ended in ${state} and is ${again ? 'not ' : ''}retried`);
      return again;
    }
    if (!again || noted === undefined) return false;
    const dueMs = timeOf(noted, 'due_at');
    const waitMs = Math.min(retry.delayMs * retry.factor ** (run.attempt - 1), retry.capMs ?? Number.POSITIVE_INFINITY);
    const [least, most] = [atMs + waitMs * (1 - retry.jitter) - 1, atMs + waitMs + 1];
    if (dueMs < least || dueMs > most) fault(`${formatPlace(run)} is retried after ${dueMs - atMs} ms, not ${waitMs}`);
    const { task, instantMs, priority } = run;
    this.#retries.set(run.id, { task, instantMs, attempt: run.attempt + 1, priority, dueMs, phase: 'waiting' });
    return true;
  }

  /** A deleted retry must have become a run when it was due, unless it was cancelled. No further attempt has another origin. */
  judge(changes: readonly Change[], made: readonly Row[], atMs: number, fault: Fault): void {
    const unexplained = new Set(made.filter((row) => numberOf(row, 'attempt') > 1));
    for (const { before, after } of changes) {
      const id = textOf(before, 'run_id');
      const retry = after === undefined ? this.#retries.get(id) : undefined;
      if (retry === undefined) continue;
      this.#retries.delete(id);
      const row = [...unexplained].find((candidate) => textOf(candidate, 'cause') === id);
      if (row === undefined) {
        fault(`a retry of ${formatPlace(retry)} was dropped`);
        continue;
      }
      unexplained.delete(row);
      if (numberOf(row, 'attempt') !== retry.attempt) fault(`a retry of ${formatPlace(retry)} has the wrong attempt`);
      if (retry.dueMs > atMs) fault(`a retry of ${formatPlace(retry)} came early`);
    }
    if (unexplained.size > 0) fault('a further attempt has no retry that it came from');
  }
}
