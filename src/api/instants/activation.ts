/**
 * Activating tokens, one or many: each gets one run at once. Many go in batches, each a commit of its own, so that no
 * lock is held for long. Whether a token is wanted is judged again once it is locked: two who ask for all that failed
 * make one run of each. A retry that waited gives way to the run.
 */
import type { Caller } from '../../contract/roles.ts';
import type { Input } from '../../http/endpoint.ts';
import { type ApiContext, author, badRequest, found } from '../context.ts';
import type { instantEndpoints, TokenState } from './endpoints.ts';
import { type State, stateOf, states } from '../shapes.ts';
import { activateTokens, lockTokens } from '../jobs/change-queries.ts';
import { listTasks } from '../jobs/queries.ts';
import { knownJob } from '../jobs/handlers.ts';
import { holdTask, judgeTokens, type JudgedToken, lastInstant, nextTokens } from '../tasks/queries.ts';

const batchSize = 1_000;

export interface TokenFilter {
  readonly task: string;
  /** Exclusive, both. */
  readonly after: Date | undefined;
  readonly before: Date | undefined;
  readonly instants?: readonly Date[] | undefined;
  readonly states: readonly State[];
}

/**
 * A task's tokens that a filter finds, a batch at a time. What comes into being meanwhile, beyond the newest there is at
 * the start, is left alone: a task that feeds itself would never end.
 */
async function* matching(ctx: ApiContext, filter: TokenFilter): AsyncGenerator<JudgedToken[]> {
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
  /** Only those that are in one of these states once they are locked. */
  readonly states?: readonly State[];
}

/** One commit; then the workers are told. */
export async function activate(ctx: ApiContext, caller: Caller | undefined, wanted: Wanted): Promise<string[]> {
  const { task, priority, states: only } = wanted;
  const runs = await ctx.db.transaction(async (tx) => {
    found((await holdTask(tx, task)) || undefined, 'task', task);
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

/** Answers how many runs were made. */
export async function activateMatching(
  ctx: ApiContext,
  caller: Caller | undefined,
  filter: TokenFilter,
  priority: string,
): Promise<number> {
  let activated = 0;
  for await (const tokens of matching(ctx, filter)) {
    const instants = tokens.map((token) => token.instant);
    const wanted = { task: filter.task, instants, priority, states: filter.states };
    activated += (await activate(ctx, caller, wanted)).length;
  }
  return activated;
}

type FilterInput = Input<(typeof instantEndpoints)['POST /api/jobs/{id}/activate']>;

/** `active` is Waterwheel's word for it; `ready` is ours. */
const asShown = (state: State): TokenState => (state === 'active' ? 'ready' : state);

/** Everything but what is queued or running already. */
const atRest = states.filter((state) => state !== 'active' && state !== 'running');

export async function activateByFilter(input: FilterInput, ctx: ApiContext) {
  const { body, params, caller } = input;
  await knownJob(ctx, params.id);
  const tasks = chosen(await listTasks(ctx.db, params.id), body.tasks);
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

function chosen(tasks: readonly NamedTask[], names: readonly string[] | undefined): readonly NamedTask[] {
  const unknown = names?.findIndex((name) => !tasks.some((task) => task.name === name)) ?? -1;
  if (unknown >= 0) {
    const known = tasks.map((task) => task.name).join(', ') || 'none';
    throw badRequest(`body.tasks[${unknown}]`, `the job has no task ${names?.[unknown]}; its tasks: ${known}`);
  }
  return tasks.filter((task) => names?.includes(task.name) ?? true);
}

const mostListed = 1_000;

async function listMatching(ctx: ApiContext, tasks: readonly NamedTask[], filter: Omit<TokenFilter, 'task'>) {
  const items: { task_id: string; task: string; instant: string; state: TokenState }[] = [];
  let tokens = 0;
  for (const { task_id, name } of tasks) {
    for await (const batch of matching(ctx, { task: task_id, ...filter })) {
      tokens += batch.length;
      for (const { instant, state } of batch.slice(0, mostListed - items.length)) {
        items.push({ task_id, task: name, instant: instant.toISOString(), state: asShown(state) });
      }
    }
  }
  return { dry_run: true, tokens, items };
}
