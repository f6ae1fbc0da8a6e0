/**
 * Ends processes that tasks leave behind in their sessions but outside their groups: a shell with job control gives each of its
 * jobs a group of its own. A search reads every process of the machine, so it runs at most once a second, for all tasks that
 * have ended meanwhile. Processes that are found get SIGTERM, and a second later SIGKILL.
 */
import { livingProcesses } from './process-table.ts';
import { signalOne } from './task-processes.ts';

const everyMs = 1_000;
/** The number of searches for a session: one for SIGTERM, one for SIGKILL. Later its number may belong to another session. */
const maxSearches = 2;

export class Leftovers {
  readonly #sessions = new Map<number, { searches: number }>();
  #timer: NodeJS.Timeout | undefined;

  /** A task with this session number has begun, so the number no longer belongs to an earlier one. */
  began(session: number): void {
    this.#sessions.delete(session);
  }

  ended(session: number): void {
    this.#sessions.set(session, { searches: maxSearches });
    this.#schedule();
  }

  /** Kills what is left now. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const session of this.#sessions.values()) session.searches = 1;
    if (this.#sessions.size > 0) await this.#search();
  }

  #schedule(): void {
    if (this.#sessions.size === 0) return;
    this.#timer ??= setTimeout(() => {
      void this.#search().finally(() => {
        this.#timer = undefined;
        this.#schedule();
      });
    }, everyMs).unref();
  }

  async #search(): Promise<void> {
    const sought = new Map(this.#sessions);
    const table = await livingProcesses();
    const found = new Set<number>();
    for (const { pid, session } of table) {
      const entry = sought.get(session);
      if (entry === undefined || this.#sessions.get(session) !== entry) continue;
      found.add(session);
      signalOne(pid, entry.searches > 1 ? 'SIGTERM' : 'SIGKILL');
    }
    for (const [session, entry] of sought) {
      entry.searches--;
      const over = entry.searches === 0 || !found.has(session);
      if (over && this.#sessions.get(session) === entry) this.#sessions.delete(session);
    }
  }
}
