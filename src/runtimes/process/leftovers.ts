/**
 * Ends what tasks leave behind in their sessions but outside their groups: a shell with job control gives each of its
 * jobs a group of its own. To look costs with every process of the machine, so it is done at most once a second, for all
 * tasks that have ended meanwhile: what is found is asked to end, and a second later killed.
 */
import { livingProcesses } from './process-table.ts';
import { signalOne } from './task-processes.ts';

const everyMs = 1_000;
/** Looks that a session is good for: one to ask, one to kill. Beyond that its number might mean another session. */
const looks = 2;

export class Leftovers {
  readonly #sessions = new Map<number, { looks: number }>();
  #timer: NodeJS.Timeout | undefined;

  /** This session's task has begun, so its number does not mean an earlier one any more. */
  began(session: number): void {
    this.#sessions.delete(session);
  }

  ended(session: number): void {
    this.#sessions.set(session, { looks });
    this.#schedule();
  }

  /** What is left now is killed. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const session of this.#sessions.values()) session.looks = 1;
    if (this.#sessions.size > 0) await this.#look();
  }

  #schedule(): void {
    if (this.#sessions.size === 0) return;
    this.#timer ??= setTimeout(() => {
      void this.#look().finally(() => {
        this.#timer = undefined;
        this.#schedule();
      });
    }, everyMs).unref();
  }

  async #look(): Promise<void> {
    const sought = new Map(this.#sessions);
    const table = await livingProcesses();
    const found = new Set<number>();
    for (const { pid, session } of table) {
      const entry = sought.get(session);
      if (entry === undefined || this.#sessions.get(session) !== entry) continue;
      found.add(session);
      signalOne(pid, entry.looks > 1 ? 'SIGTERM' : 'SIGKILL');
    }
    for (const [session, entry] of sought) {
      entry.looks--;
      const over = entry.looks === 0 || !found.has(session);
      if (over && this.#sessions.get(session) === entry) this.#sessions.delete(session);
    }
  }
}
