/**
 * Activates one or many tokens: each gets one run at once. Many tokens are activated in batches with a commit each, so that no
 * lock is held for long. The state of a token is checked again under its lock, so that two concurrent requests for all failed
 * tokens create one run of each. The run replaces a waiting retry.
 */
import type { Caller } from '../../contract/roles.ts';
import type { Input } from '../../http/endpoint.ts';
import { type ApiContext, author, badRequest, requireFound } from '../context.ts';
import type { instantEndpoints, TokenState } from './endpoints.ts';
import { type State, stateOf, states } from '../shapes.ts';
import { activateTokens, lockTokens } from '../jobs/change-queries.ts';
import { listTasks } from '../jobs/queries.ts';
import { requireJob } from '../jobs/handlers.ts';
import { holdTask, judgeTokens, type JudgedToken, lastInstant, nextTokens } from '../tasks/queries.ts';

const batchSize = 1_000;

export interface TokenFilter {
  readonly task: string;
  /** Exclusive, like `before`. */
  readonly after: Date | undefined;
  readonly before: Date | undefined;
  readonly instants?: readonly Date[] | undefined;
  readonly states: readonly State[];
}

/**
 * Yields the matching tokens of a task in batches, up to the newest token at the start. Newer tokens are left out, because a
 * task that triggers itself would make the loop endless.
 */
async function* findMatching(ctx: ApiContext, filter: TokenFilter): AsyncGenerator<JudgedToken[]> {
  const { task, before, instants } = filter;
  const upTo = await lastInstant(ctx.db, { task, after: filter.after, before });
  let after = filter.after;
  while (upTo !== undefined) {
    const batch = await nextTokens(ctx.db, { task, after, upTo, instants, limit: batchSize });
    const wanted = batch.filter((token) => filter.states.includes(token.state));
    if (wanted.length > 0) yield wanted;
    after = batch.at(-1)?.instant;
    if (batch.length < batchSize) return;
  }
}

interface Wanted {
  readonly task: string;
  readonly instants: readonly Date[];
  readonly priority: string;
  /** Only tokens in one of these states, checked under the lock. */
  readonly states?: readonly State[];
}

/** Activates in one commit, then wakes the workers. */
export async function activate(ctx: ApiContext, caller: Caller | undefined, wanted: Wanted): Promise<string[]> {
  const { task, priority, states: only } = wanted;
  const runs = await ctx.db.transaction(async (tx) => {
    requireFound((await holdTask(tx, task)) || undefined, 'task', task);
    await lockTokens(tx, task, wanted.instants);
    const instants =
      only === undefined
        ? wanted.instants
        : (await judgeTokens(tx, task, wanted.instants)).flatMap((t) => (only.includes(t.state) ? [t.instant] : []));
    if (instants.length === 0) return [];
    const tasks = instants.map(() => task);
    return activateTokens(tx, { tasks, instants, priority, ...author(ctx, caller) });
  });
  if (runs.length > 0) {
    ctx.hints.send('ready');
    ctx.hints.send('events');
  }
  return runs;
}

/** Returns the number of created runs. */
export async function activateMatching(
  ctx: ApiContext,
  caller: Caller | undefined,
  filter: TokenFilter,
  priority: string,
): Promise<number> {
  let activated = 0;
  for await (const tokens of findMatching(ctx, filter)) {
    const instants = tokens.map((token) => token.instant);
    const wanted = { task: filter.task, instants, priority, states: filter.states };
    activated += (await activate(ctx, caller, wanted)).length;
  }
  return activated;
}

type FilterInput = Input<(typeof instantEndpoints)['POST /api/jobs/{id}/activate']>;

/** Waterwheel's `active` is our `ready`. */
const toTokenState = (state: State): TokenState => (state === 'active' ? 'ready' : state);

/** All states except queued and running. */
const atRest = states.filter((state) => state !== 'active' && state !== 'running');

export async function activateByFilter(input: FilterInput, ctx: ApiContext) {
  const { body, params, caller } = input;
  await requireJob(ctx, params.id);
  const tasks = chooseTasks(await listTasks(ctx.db, params.id), body.tasks);
  const filter = {
    after: body.first && new Date(body.first.getTime() - 1),
    before: body.last && new Date(body.last.getTime() + 1),
    instants: body.instants,
    states: body.states?.map(stateOf) ?? atRest,
  };
  if (body.dry_run) return listMatching(ctx, tasks, filter);
  let tokens = 0;
  for (const { task_id: task } of tasks)
    tokens += await activateMatching(ctx, caller, { task, ...filter }, body.priority);
  return { dry_run: false, tokens };
}

type NamedTask = { readonly task_id: string; readonly name: string };

function chooseTasks(tasks: readonly NamedTask[], names: readonly string[] | undefined): readonly NamedTask[] {
  const unknown = names?.findIndex((name) => !tasks.some((task) => task.name === name)) ?? -1;
  if (unknown >= 0) {
    const known = tasks.map((task) => task.name).join(', ') || 'none';
    throw badRequest(`body.tasks[${unknown}]`, `the job has no task ${names?.[unknown]}; its tasks: ${known}`);
  }
  return tasks.filter((task) => names?.includes(task.name) ?? true);
}

const maxListedTokens = 1_000;

async function listMatching(ctx: ApiContext, tasks: readonly NamedTask[], filter: Omit<TokenFilter, 'task'>) {
  const items: { task_id: string; task: string; instant: string; state: TokenState }[] = [];
  let tokens = 0;
  for (const { task_id, name } of tasks) {
    for await (const batch of findMatching(ctx, { task: task_id, ...filter })) {
      tokens += batch.length;
      for (const { instant, state } of batch.slice(0, maxListedTokens - items.length)) {
        items.push({ task_id, task: name, instant: instant.toISOString(), state: toTokenState(state) });
      }
    }
  }
  return { dry_run: true, tokens, items };
}
