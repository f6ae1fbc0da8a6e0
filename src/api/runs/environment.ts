/**
 * The environment of a run, for people: its version of the document, with placeholders expanded as in a worker, or what its flow has
 * computed for its node.
 *
 * 1. No secret is read. A value from the stash is replaced by the name of its entry, and the run's credential is left out.
 * 2. Of a flow with sealed fields, only the task itself gets values.
 * 3. Each worker gives its tasks the address of the API, so the address is shown only if it is the same for all workers.
 */
import { defaultQueue, partsOfLane } from '../../contract/lane.ts';
import type { NodeWork, RuntimeBlock, TaskDefinition } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';
import { unseal } from '../../flows/executions/sealing.ts';
import { isObject } from '../../flows/json.ts';
import { Slices } from '../../kernel/process/slices.ts';
import type { CallAnswer } from '../../http/client.ts';
import { cacheOf, readQueuedDefinitions } from '../../jobs/task-definitions.ts';
import { findKind, viewBlock } from '../../runtimes/kinds.ts';
import { addedVariables, declaredIn, secretNames } from '../../runtimes/task/environment.ts';
import { factsOf, nodeFactsOf, type RunFacts } from '../../runtimes/task/facts.ts';
import { Expansion, TemplateError } from '../../runtimes/task/templates.ts';
import { asWritten } from '../../runtimes/work.ts';
import type { ApiContext } from '../context.ts';
import type { runEndpoints } from './endpoints.ts';
import type { FullRun } from './queries.ts';
import { findNodeWork, findParams } from './view-queries.ts';

type Environment = CallAnswer<(typeof runEndpoints)['GET /api/runs/{id}/environment']>;
type Variable = Environment['variables'][number];

/** Stands for the address if it is not known. */
const urlPlaceholder = '{{url}}';
const addresses: ReadonlySet<string> = new Set(['MILLRACE_URL', 'MILLRACE_PARAMS_URL', 'WATERWHEEL_SERVER_ADDR']);

export async function environmentOfRun(ctx: ApiContext, run: FullRun, isForTask = false): Promise<Environment> {
  const { runtime: block, queue, timeoutMs, facts, isSealed } = await describeRun(ctx, run);
  const expansion = new Expansion(facts);
  const found = {
    runtime: block.kind,
    queue,
    ...viewOf(block, expansion),
    timeout_seconds: block.kind === 'none' ? null : timeoutMs / 1_000,
    variables: await variablesOf(block, expansion, ctx.settings.publicUrl !== undefined),
    params: { ...facts.params },
  };
  return isSealed && !isForTask ? withoutValues(found) : found;
}

type Work = Pick<NodeWork, 'name' | 'timeout_ms' | 'runtime'> & {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly queue?: string | null;
};

/** What is run, and the facts that its task gets. */
interface Described {
  readonly runtime: RuntimeBlock;
  readonly queue: string;
  readonly timeoutMs: number;
  readonly facts: RunFacts;
  /** Its flow has fields that people may not see, and any of its values may be one. */
  readonly isSealed: boolean;
}

async function describeRun(ctx: ApiContext, run: FullRun): Promise<Described> {
  const { publicUrl } = ctx.settings;
  const found = (await describeNode(ctx, run)) ?? (await describeTask(ctx, run));
  return publicUrl === undefined ? { ...found, facts: { ...found.facts, url: urlPlaceholder } } : found;
}

async function describeTask(ctx: ApiContext, run: FullRun): Promise<Described> {
  const { task_id: task, version } = run;
  const tenant = ctx.tenant.id;
  const keys = task === null ? [] : [{ tenant, task, version }];
  const [found] = await readQueuedDefinitions(ctx.db, { tenant }, keys, cacheOf(ctx.pool));
  if (found === undefined)
    throw new MillraceError('not_found', `the definition of run ${run.id} is no longer on record`);
  const { definition, queue } = found;
  const { runtime, timeout_ms: timeoutMs } = definition;
  return { runtime, queue, timeoutMs, facts: await factsOfTask(ctx, run, definition), isSealed: false };
}

async function factsOfTask(ctx: ApiContext, run: FullRun, definition: TaskDefinition): Promise<RunFacts> {
  const instant = run.instant ?? run.queued_at;
  const params = await findParams(ctx.db, definition.job.id, instant);
  const ofTask = { task: definition.task, instant: instant.toISOString() };
  return factsOf({ ...handOutOf(ctx, run, params), ...ofTask }, definition, ctx.settings.publicUrl ?? '');
}

async function describeNode(ctx: ApiContext, run: FullRun): Promise<Described | undefined> {
  const found = run.task_id === null ? await findNodeWork(ctx.db, run.id) : undefined;
  if (found === undefined) return undefined;
  const { execution, id, work, project, lane } = found;
  const { name, timeout_ms: timeoutMs, runtime, params = {}, queue } = unseal(ctx.secrets, work) as unknown as Work;
  const isSealed = isObject(work) && work['sealed'] !== undefined;
  const facts = nodeFactsOf(
    handOutOf(ctx, run, params),
    { execution, id, name, project },
    ctx.settings.publicUrl ?? '',
  );
  const ofLane = lane === null ? undefined : partsOfLane(lane).queue;
  return { runtime, queue: queue ?? ofLane ?? defaultQueue, timeoutMs, facts, isSealed };
}

function handOutOf(ctx: ApiContext, run: FullRun, params: Readonly<Record<string, unknown>>) {
  const { id: tenant, name } = ctx.tenant;
  const { id, lease, attempt, priority } = run;
  return { tenant, tenant_name: name, run: id, lease, attempt, priority, params: { ...params }, credential: '' };
}

function withoutValues(found: Environment): Environment {
  const variables = found.variables.map((variable) =>
    variable.from === 'document' || variable.name === 'MILLRACE_PARAMS' ? { ...variable, value: null } : variable,
  );
  return { ...found, command: null, cwd: null, container: null, input: null, params: {}, variables };
}

function viewOf(
  block: RuntimeBlock,
  expansion: Expansion,
): Pick<Environment, 'command' | 'image' | 'cwd' | 'container' | 'input'> {
  const view = orAsWritten(
    () => viewBlock(block, expansion),
    () => viewBlock(block, asWritten),
  );
  return { ...view, command: view.command === null ? null : [...view.command] };
}

/** A placeholder without a value ends the run in an error. Here its text stays unexpanded. */
function orAsWritten<T>(expanded: () => T, written: () => T): T {
  try {
    return expanded();
  } catch (error) {
    if (error instanceof TemplateError) return written();
    throw error;
  }
}

/** Millrace's variables override those of the document. There may be thousands, so the loop yields to other requests. */
async function variablesOf(block: RuntimeBlock, expansion: Expansion, isUrlKnown: boolean): Promise<Variable[]> {
  const ours = findKind(block.kind)?.hasVariables === false ? {} : addedVariables(expansion.facts);
  const slices = new Slices();
  const declared: Variable[] = [];
  for (const [name, value] of Object.entries(declaredIn(block))) {
    if (!Object.hasOwn(ours, name)) declared.push(declaredVariable(name, value, expansion));
    if (slices.isOver) await slices.pause();
  }
  const more = Object.entries(ours).map(([name, value]): Variable => {
    if (!isUrlKnown && addresses.has(name)) return { name, value: null, stash: null, from: 'worker' };
    return { name, value: secretNames.has(name) ? null : value, stash: null, from: 'millrace' };
  });
  return [...declared, ...more];
}

function declaredVariable(name: string, value: string | { readonly stash: string }, expansion: Expansion): Variable {
  if (typeof value !== 'string') return { name, value: null, stash: value.stash, from: 'document' };
  const shown = orAsWritten(
    () => expansion.text(value),
    () => value,
  );
  return { name, value: shown, stash: null, from: 'document' };
}
