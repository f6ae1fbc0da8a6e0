/**
 * Decides when to count a job's finished runs. Counting reads all of them, so a job is counted when it is likely to have too
 * many, judged by its last rate of growth, and at least every ten minutes. This state only saves work: a new scheduler
 * counts every job once.
 */
import { slackOf } from './queries.ts';

const minWaitMs = 30_000;
const maxWaitMs = 600_000;

interface LastCount {
  readonly keep: number;
  /** The runs that were left after the last count; undefined before the first. */
  readonly runs: number | undefined;
  readonly atMs: number;
  readonly dueMs: number;
}

export class JobCounts {
  readonly #looks = new Map<string, LastCount>();

  /** Sets how many runs of the job are kept; null: all, so the job need not be counted. */
  know(id: string, keep: number | null): void {
    if (keep === null) this.#looks.delete(id);
    else if (this.#looks.get(id)?.keep !== keep) this.#looks.set(id, { keep, runs: undefined, atMs: 0, dueMs: 0 });
  }

  /** The jobs to count now, in groups of at most `jobs` jobs. A group is closed once its jobs have `runs` runs. */
  due(nowMs: number, jobs: number, runs: number): { id: string; keep: number }[][] {
    const groups: { id: string; keep: number }[][] = [];
    let room = 0;
    for (const [id, look] of this.#looks) {
      if (look.dueMs > nowMs) continue;
      const group = groups.at(-1);
      if (group !== undefined && group.length < jobs && room > 0) group.push({ id, keep: look.keep });
      else {
        groups.push([{ id, keep: look.keep }]);
        room = runs;
      }
      room -= look.runs ?? 0;
    }
    return groups;
  }

  /** Records that the job had `runs` runs, of which `surplus` were removed. Returns whether there are still too many. */
  note(id: string, { runs, surplus }: { runs: number; surplus: number }, nowMs: number): boolean {
    const before = this.#looks.get(id);
    if (before === undefined) return false;
    const grown = before.runs === undefined ? 0 : Math.max(0, runs - before.runs);
    const perMs = grown / Math.max(1, nowMs - before.atMs);
    const idleMs = before.runs === undefined ? minWaitMs : maxWaitMs;
    const left = runs - surplus;
    const room = before.keep + slackOf(before.keep) - left;
    const waitMs = perMs === 0 ? idleMs : Math.min(maxWaitMs, Math.max(minWaitMs, room / perMs));
    this.#looks.set(id, { keep: before.keep, runs: left, atMs: nowMs, dueMs: room < 0 ? nowMs : nowMs + waitMs });
    return room < 0;
  }
}
