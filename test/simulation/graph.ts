/**
 * A plain model of the graph that the documents describe: the tasks, what each waits for, and whether it may run. It is
 * written from docs/jobs.md and docs/states.md, independently of the product's tables.
 */
import { type EdgePlan, type JobPlan, type RetryPlan, thresholdOf } from './documents.ts';

export interface ModelTask {
  readonly job: string;
  threshold: number;
  retry: RetryPlan | undefined;
  /** A paused task makes no runs from tokens, and none of its runs is handed out. */
  paused: boolean;
  removed: boolean;
}

interface ModelEdge extends EdgePlan {
  readonly child: string;
}

const endOfTimeMs = Date.UTC(10_000, 0, 1);

export type FinalState = 'success' | 'failure' | 'timeout' | 'error' | 'cancelled';

/** A count that a task receives for an instant. */
export interface Arrival {
  readonly task: string;
  readonly instantMs: number;
}

export class Graph {
  readonly tasks = new Map<string, ModelTask>();
  readonly #paused = new Map<string, boolean>();
  #edges: ModelEdge[] = [];

  task(name: string): ModelTask {
    const task = this.tasks.get(name);
    if (task === undefined) throw new Error(`the model has no task ${name}`);
    return task;
  }

  apply(job: JobPlan): void {
    const paused = job.paused ?? this.#paused.get(job.name) ?? false;
    this.#paused.set(job.name, paused);
    const named = new Set(job.tasks.map((task) => `${job.name}/${task.name}`));
    const triggers = new Set(job.triggers.map((trigger) => trigger.name));
    for (const task of job.tasks) {
      const { retry } = task;
      const model = { job: job.name, threshold: thresholdOf(task), retry, paused, removed: false };
      this.tasks.set(`${job.name}/${task.name}`, model);
    }
    this.#remove((name, task) => task.job === job.name && !named.has(name));
    const stays = (edge: ModelEdge): boolean =>
      !named.has(edge.child) && !(edge.kind === 'trigger' && edge.job === job.name && !triggers.has(edge.parent));
    const edges = job.tasks.flatMap((task) =>
      task.edges.map((edge) => ({ ...edge, child: `${job.name}/${task.name}` })),
    );
    this.#edges = [...this.#edges.filter(stays), ...edges];
  }

  remove(job: string): void {
    this.#remove((_, task) => task.job === job);
    this.#edges = this.#edges.filter((edge) => edge.kind !== 'trigger' || edge.job !== job);
  }

  #remove(isGone: (name: string, task: ModelTask) => boolean): void {
    for (const [name, task] of this.tasks) {
      if (task.removed || !isGone(name, task)) continue;
      task.removed = true;
      task.paused = true;
      this.#edges = this.#edges.filter(
        (edge) => edge.child !== name && (edge.kind === 'trigger' || `${edge.job}/${edge.parent}` !== name),
      );
    }
  }

  pause(job: string, paused: boolean): void {
    this.#paused.set(job, paused);
    for (const task of this.tasks.values()) if (task.job === job && !task.removed) task.paused = paused;
  }

  arrivalsOfFiring(trigger: string, instantMs: number): Arrival[] {
    return this.#arrivals((edge) => edge.kind === 'trigger' && `${edge.job}/${edge.parent}` === trigger, instantMs);
  }

  /** Implements the table "what fires what" of docs/states.md, for a run that is not retried. */
  arrivalsOfEnd(task: string, instantMs: number, state: FinalState): Arrival[] {
    if (state === 'cancelled') return [];
    const kinds = state === 'success' ? ['success', 'done'] : ['failure', 'done'];
    return this.#arrivals((edge) => kinds.includes(edge.kind) && `${edge.job}/${edge.parent}` === task, instantMs);
  }

  #arrivals(leads: (edge: ModelEdge) => boolean, fromMs: number): Arrival[] {
    return this.#edges
      .filter(leads)
      .map((edge) => ({ task: edge.child, instantMs: fromMs + edge.offsetMs }))
      .filter(({ instantMs }) => instantMs < endOfTimeMs);
  }

  /** The tasks that a manual run of the job starts. */
  entries(job: string): string[] {
    const mine = [...this.tasks].filter(([, task]) => task.job === job && !task.removed).map(([name]) => name);
    const parents = (child: string): ModelEdge[] =>
      this.#edges.filter(
        (edge) =>
          edge.child === child && edge.kind !== 'trigger' && edge.job === job && `${job}/${edge.parent}` !== child,
      );
    const first = mine.filter((name) => parents(name).length === 0);
    return first.length > 0 ? first : mine.filter((name) => parents(name).every((edge) => edge.offsetMs !== 0));
  }
}
