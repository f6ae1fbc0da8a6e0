/**
 * The oracle of limits: never more runs of a task than its `max_running`, of a pool's tasks than it has places, or
 * instants of a job than its `max_active_instants`. A limit that was edited holds for what begins afterwards, so what
 * counts is the highest that there was.
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
  /** Jobs some version of which let instants give way to others. */
  readonly #giving = new Map<string, Set<string>>();
  /** Instants of jobs (`job@instant`) of which a run was handed out, and that are not over. */
  readonly #active = new Map<string, { job: string; instantMs: number }>();

  applied(job: JobPlan): void {
    this.#raise(`job ${job.name}`, job.maxActiveInstants);
    if (job.overlap !== undefined) this.#giving.set(job.name, new Set(this.#giving.get(job.name)).add(job.overlap));
    for (const task of job.tasks) {
      const name = `${job.name}/${task.name}`;
      this.#raise(`task ${name}`, task.maxRunning);
      // one that has left a pool may still hold a place of it
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

  /** Whether a run or retry may be cancelled for the sake of another instant. Catch-up and backfills always wait. */
  mayGiveWay(one: Open & { readonly priority: string }): boolean {
    const rules = this.#giving.get(jobOf(one.task));
    if (rules === undefined || one.priority === 'backfill') return false;
    return rules.has('cancel_older') || (one.phase === 'queued' && rules.has('skip'));
  }

  /** After a run was handed out. `runs`: all that are not finished. */
  judge(run: Open, runs: readonly Open[], fault: Fault): void {
    const running = runs.filter(({ phase }) => phase === 'running');
    const most = (what: string): number => this.#highest.get(what) ?? Number.POSITIVE_INFINITY;
    const ofTask = running.filter(({ task }) => task === run.task).length;
    if (ofTask > most(`task ${run.task}`)) fault(`${ofTask} runs of ${run.task} at once`);
    const pool = this.#pools.get(run.task);
    const steady = ({ task }: Open): boolean => this.#pools.get(task) === pool && !this.#highest.has(`in pool ${task}`);
    if (pool !== undefined && steady(run)) {
      const inPool = running.filter(steady).length;
      if (inPool > most(`pool ${pool}`)) fault(`${inPool} runs in pool ${pool} at once`);
    }
    const job = jobOf(run.task);
    this.#active.set(`${job}@${run.instantMs}`, { job, instantMs: run.instantMs });
    const instants = [...this.#active.values()].filter((active) => active.job === job).length;
    if (instants > most(`job ${job}`)) fault(`${instants} instants of ${job} at once`);
  }

  /** After every commit: instants of which nothing is left are over. */
  settle(isOver: (job: string, instantMs: number) => boolean): void {
    for (const [key, { job, instantMs }] of this.#active) if (isOver(job, instantMs)) this.#active.delete(key);
  }
}

export function jobOf(task: string): string {
  return task.slice(0, task.indexOf('/'));
}
