/**
 * When to count a job's finished runs. Counting walks along all of them, so it is done when the job is likely to have
 * too many by the rate it grew at last, and at least every ten minutes. What is remembered here only saves work; a new
 * scheduler counts every job once.
 */
import { slackOf } from './queries.ts';

const soonestMs = 30_000;
const latestMs = 600_000;

interface Look {
  readonly keep: number;
  /** What was left at the last look; undefined before the first. */
  readonly runs: number | undefined;
  readonly atMs: number;
  readonly dueMs: number;
}

export class JobCounts {
  readonly #looks = new Map<string, Look>();

  /** How many runs of the job are kept now; null: all, and it need not be counted. */
  know(id: string, keep: number | null): void {
    if (keep === null) this.#looks.delete(id);
    else if (this.#looks.get(id)?.keep !== keep) this.#looks.set(id, { keep, runs: undefined, atMs: 0, dueMs: 0 });
  }

  /** Jobs that are to be counted, in groups of so many jobs, or of fewer that have so many runs. */
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

  /** It had so many runs, of which so many are gone now. Answers whether there are still too many. */
  note(id: string, { runs, surplus }: { runs: number; surplus: number }, nowMs: number): boolean {
    const before = this.#looks.get(id);
    if (before === undefined) return false;
    const grown = before.runs === undefined ? 0 : Math.max(0, runs - before.runs);
    const perMs = grown / Math.max(1, nowMs - before.atMs);
    const idleMs = before.runs === undefined ? soonestMs : latestMs;
    const left = runs - surplus;
    const room = before.keep + slackOf(before.keep) - left;
    const waitMs = perMs === 0 ? idleMs : Math.min(latestMs, Math.max(soonestMs, room / perMs));
    this.#looks.set(id, { keep: before.keep, runs: left, atMs: nowMs, dueMs: room < 0 ? nowMs : nowMs + waitMs });
    return room < 0;
  }
}
