/**
 * Work with joins, retries and catch-up, and a known outcome: each task runs once at each instant and finally succeeds.
 * A run that is lost three times ends in error, which is retried too.
 */

const project = 'chaos';

export interface Fan {
  readonly name: string;
  readonly document: string;
  readonly instants: readonly number[];
}

export interface FanOptions {
  readonly firstMs: number;
  readonly count: number;
  /** With `none`, only a backfill fires the instants. */
  readonly catchup?: 'earliest' | 'latest' | 'random' | 'last' | 'none';
  readonly paused?: boolean;
  /** Whether `limits` apply. */
  readonly limited?: boolean;
}

/** Limits of a limited fan: instants at once, runs of its slow task at once, places in the pool of those runs. */
export const limits = { instants: 5, slow: 2, pool: 'chairs', chairs: 3 } as const;

export const everyMs = 1_000;

const retry = { max_attempts: 50, delay: '100ms', on: ['failure', 'timeout', 'error'] };

/** The branches of a fan: one does nothing, one fails at first, one takes 50 ms, one prints. */
const branches = [
  { name: 'nothing' },
  { name: 'flaky', function: { name: 'flaky' } },
  { name: 'slow', function: { name: 'slow' } },
  { name: 'printing', process: { command: ['sh', '-c', 'echo "begin {{instant}}"; sleep 0.02; echo end'] } },
] as const;

/** A trigger → one task → four tasks → one that joins them → one that follows however the join ended. */
export function fan(name: string, options: FanOptions): Fan {
  const { firstMs, count, catchup = 'earliest', limited = false, paused } = options;
  const endMs = firstMs + count * everyMs;
  const instants = Array.from({ length: count }, (_, i) => firstMs + i * everyMs);
  const trigger = {
    name: 'tick',
    start: new Date(firstMs).toISOString(),
    end: new Date(endMs).toISOString(),
    period: `${everyMs}ms`,
    catchup,
  };
  const tasks = [
    { name: 'first', depends: ['trigger/tick'] },
    ...branches.map((branch) => ({ ...branch, ...(limited && limitsOf(branch)), depends: ['task/first'] })),
    { name: 'join', depends: branches.map((branch) => `task/${branch.name}`) },
    { name: 'after', depends_done: ['task/join'] },
  ];
  return {
    name,
    instants: catchup === 'last' ? instants.slice(-1) : instants,
    document: documentOf({
      name,
      triggers: [trigger],
      tasks,
      ...(paused === undefined ? {} : { paused }),
      ...(limited ? { max_active_instants: limits.instants } : {}),
    }),
  };
}

function limitsOf(branch: { readonly name: string }): object {
  return branch.name === 'slow' ? { max_running: limits.slow, pool: limits.pool } : {};
}

export const fanTasks = branches.length + 3;

/** A job with one task that waits for the joins of several fans at the same instant. */
export function meeting(name: string, fans: readonly Fan[]): Fan {
  const depends = fans.map((each) => `${each.name}/task/join`);
  return {
    name,
    instants: fans[0]?.instants ?? [],
    document: documentOf({ name, tasks: [{ name: 'meet', depends }] }),
  };
}

function documentOf({ tasks, ...rest }: { name: string; tasks: readonly object[]; [field: string]: unknown }): string {
  return JSON.stringify({ project, ...rest, tasks: tasks.map((task) => ({ retry, ...task })) });
}

export { project as chaosProject };
