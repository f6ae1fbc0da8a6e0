/**
 * What a run is given, told to people: its version of the document with the placeholders filled in as a worker does it.
 * No secret is read: of what comes from the stash the entry's name is told, of the run's credential only that there is one.
 * Where the API is, a worker tells its tasks: unless it is the same for all of them, it is not told here.
 */
import type { RuntimeBlock, TaskDefinition } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';
import { loopShare } from '../../kernel/process/loop-share.ts';
import type { CallAnswer } from '../../http/client.ts';
import { cacheOf, readQueuedDefinitions } from '../../jobs/task-definitions.ts';
import { viewBlock } from '../../runtimes/kinds.ts';
import { addedVariables, declaredIn, secretNames } from '../../runtimes/task/environment.ts';
import { factsOf, type RunFacts } from '../../runtimes/task/facts.ts';
import { Expansion, TemplateError } from '../../runtimes/task/templates.ts';
import { asWritten } from '../../runtimes/work.ts';
import type { ApiContext } from '../context.ts';
import type { runEndpoints } from './endpoints.ts';
import type { FullRun } from './queries.ts';
import { findParams } from './view-queries.ts';

type Environment = CallAnswer<(typeof runEndpoints)['GET /api/runs/{id}/environment']>;
type Variable = Environment['variables'][number];

/** What stands for the address where it is not known: the placeholder itself. */
const urlPlaceholder = '{{url}}';
const addresses: ReadonlySet<string> = new Set(['MILLRACE_URL', 'MILLRACE_PARAMS_URL', 'WATERWHEEL_SERVER_ADDR']);

export async function environmentOfRun(ctx: ApiContext, run: FullRun): Promise<Environment> {
  const { definition, queue } = await definitionOf(ctx, run);
  const facts = await factsOfRun(ctx, run, definition);
  const block = definition.runtime;
  const expansion = new Expansion(facts);
  return {
    runtime: block.kind,
    queue,
    ...viewOf(block, expansion),
    timeout_seconds: block.kind === 'none' ? null : definition.timeout_ms / 1_000,
    variables: block.kind === 'none' ? [] : await variablesOf(block, expansion, ctx.settings.publicUrl !== undefined),
    params: { ...facts.params },
  };
}

async function definitionOf(ctx: ApiContext, run: FullRun): Promise<{ definition: TaskDefinition; queue: string }> {
  const { task_id: task, version } = run;
  const tenant = ctx.tenant.id;
  const keys = task === null ? [] : [{ tenant, task, version }];
  const [found] = await readQueuedDefinitions(ctx.db, tenant, keys, cacheOf(ctx.pool));
  if (found !== undefined) return found;
  throw new MillraceError('not_found', `what run ${run.id} was made from is no longer on record`);
}

async function factsOfRun(ctx: ApiContext, run: FullRun, definition: TaskDefinition): Promise<RunFacts> {
  const instant = run.instant ?? run.queued_at;
  const handOut = {
    tenant: ctx.tenant.id,
    tenant_name: ctx.tenant.name,
    run: run.id,
    lease: run.lease,
    task: definition.task,
    instant: instant.toISOString(),
    attempt: run.attempt,
    priority: run.priority,
    params: await findParams(ctx.db, definition.job.id, instant),
    credential: '',
  };
  const { publicUrl } = ctx.settings;
  const facts = factsOf(handOut, definition, publicUrl ?? '');
  return publicUrl === undefined ? { ...facts, url: urlPlaceholder } : facts;
}

function viewOf(block: RuntimeBlock, expansion: Expansion): Pick<Environment, 'command' | 'image' | 'cwd' | 'input'> {
  const view = orAsWritten(
    () => viewBlock(block, expansion),
    () => viewBlock(block, asWritten),
  );
  return { ...view, command: view.command === null ? null : [...view.command] };
}

/** A placeholder without a value ends the run in an error that names it; here its text stays as it was written. */
function orAsWritten<T>(expanded: () => T, written: () => T): T {
  try {
    return expanded();
  } catch (error) {
    if (error instanceof TemplateError) return written();
    throw error;
  }
}

/** What Millrace adds goes over what the document declares. There may be thousands: others go on in between. */
async function variablesOf(block: RuntimeBlock, expansion: Expansion, isUrlKnown: boolean): Promise<Variable[]> {
  const ours = addedVariables(expansion.facts);
  const rest = loopShare();
  const declared: Variable[] = [];
  for (const [name, value] of Object.entries(declaredIn(block))) {
    if (!Object.hasOwn(ours, name)) declared.push(declaredVariable(name, value, expansion));
    await rest();
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
