/**
 * The oracle of limits: `max_running` of a task, places of a pool, `max_active_instants` of a job. An edited limit holds
 * only for what begins afterwards, so the highest limit so far counts.
 */
import type { JobPlan } from './documents.ts';
import type { Fault } from './steps.ts';

interface Open {
  readonly task: string;
  readonly instantMs: number;
  readonly phase: 'queued' | 'running' | 'finished' | 'waiting';
}

export class Limits {
  readonly #highest = new Map<string, number>();
  readonly #pools = new Map<string, string>();
  /** Overlap policies by job, of all its versions so far. */
  readonly #giving = new Map<string, Set<string>>();
  /** Instants of jobs (`job@instant`) that have had a run handed out and are not over. */
  readonly #active = new Map<string, { job: string; instantMs: number }>();

  recordApply(job: JobPlan): void {
    this.#raise(`job ${job.name}`, job.maxActiveInstants);
    if (job.overlap !== undefined) this.#giving.set(job.name, new Set(this.#giving.get(job.name)).add(job.overlap));
    for (const task of job.tasks) {
      const name = `${job.name}/${task.name}`;
      this.#raise(`task ${name}`, task.maxRunning);
      // a task that has left a pool may still hold one of its places
      if (task.pool === undefined) this.#highest.set(`in pool ${name}`, Number.POSITIVE_INFINITY);
      else this.#pools.set(name, task.pool);
    }
  }

  #raise(what: string, limit: number | undefined): void {
    this.#highest.set(what, Math.max(this.#highest.get(what) ?? 0, limit ?? Number.POSITIVE_INFINITY));
  }

  setPool(name: string, places: number): void {
    this.#raise(`pool ${name}`, places);
  }

  /** Whether a run or retry may be cancelled in favour of another instant. Catch-ups and backfills always wait. */
  mayGiveWay(one: Open & { readonly priority: string }): boolean {
    const rules = this.#giving.get(jobOf(one.task));
    if (rules === undefined || one.priority === 'backfill') return false;
    return rules.has('cancel_older') || (one.phase === 'queued' && rules.has('skip'));
  }

  /** Checks the limits after a run was handed out. `runs` are all unfinished runs. */
  judge(run: Open, runs: readonly Open[], fault: Fault): void {
    const running = runs.filter(({ phase }) => phase === 'running');
    const limitOf = (what: string): number => this.#highest.get(what) ?? Number.POSITIVE_INFINITY;
    const ofTask = running.filter(({ task }) => task === run.task).length;
    if (ofTask > limitOf(`task ${run.task}`)) fault(`${ofTask} runs of ${run.task} at once`);
    const pool = this.#pools.get(run.task);
    const isCounted = ({ task }: Open): boolean =>
      this.#pools.get(task) === pool && !this.#highest.has(`in pool ${task}`);
    if (pool !== undefined && isCounted(run)) {
      const inPool = running.filter(isCounted).length;
      if (inPool > limitOf(`pool ${pool}`)) fault(`${inPool} runs in pool ${pool} at once`);
    }
    const job = jobOf(run.task);
    this.#active.set(`${job}@${run.instantMs}`, { job, instantMs: run.instantMs });
    const instants = [...this.#active.values()].filter((active) => active.job === job).length;
    if (instants > limitOf(`job ${job}`)) fault(`${instants} instants of ${job} at once`);
  }

  /** Forgets instants that are over; called after every commit. */
  settle(isOver: (job: string, instantMs: number) => boolean): void {
    for (const [key, { job, instantMs }] of this.#active) if (isOver(job, instantMs)) this.#active.delete(key);
  }
}

export function jobOf(task: string): string {
  return task.slice(0, task.indexOf('/'));
}
