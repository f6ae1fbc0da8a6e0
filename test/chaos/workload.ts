/**
 * Work with joins, retries and catch-up, whose outcome is known beforehand: each task runs once at each instant, and
 * succeeds in the end. Whatever loses a run three times ends it in error; that is retried, too.
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
  /** With `none`, nothing fires them but a backfill. */
  readonly catchup?: 'earliest' | 'latest' | 'random' | 'last' | 'none';
  readonly paused?: boolean;
  /** With these limits (see `limits`). */
  readonly limited?: boolean;
}

/** What a limited fan may do at once: instants, runs of its slow task, places in the pool that those share. */
export const limits = { instants: 5, slow: 2, pool: 'chairs', chairs: 3 } as const;

export const everyMs = 1_000;

const retry = { max_attempts: 50, delay: '100ms', on: ['failure', 'timeout', 'error'] };

/** What the branches of a fan do: nothing, fail at first, take a moment, print. */
const branches = [
  { name: 'nothing' },
  { name: 'flaky', function: { name: 'flaky' } },
  { name: 'slow', function: { name: 'slow' } },
  { name: 'printing', process: { command: ['sh', '-c', 'echo "begin {{instant}}"; sleep 0.02; echo end'] } },
] as const;

/** A trigger → one task → four → one that joins them, and one that follows however that ended. */
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
    ...branches.map((branch) => ({ ...branch, ...(limited && slowly(branch)), depends: ['task/first'] })),
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

function slowly(branch: { readonly name: string }): object {
  return branch.name === 'slow' ? { max_running: limits.slow, pool: limits.pool } : {};
}

export const fanTasks = branches.length + 3;

/** One task that waits for the joins of several fans at the same instant. */
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
