/**
 * The environment of a run, for people: its version of the document, with placeholders expanded as in a worker.
 *
 * 1. No secret is read. A value from the stash is replaced by the name of its entry, and the run's credential is left out.
 * 2. Each worker gives its tasks the address of the API, so the address is shown only if it is the same for all workers.
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

/** Stands for the address if it is not known. */
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
  const [found] = await readQueuedDefinitions(ctx.db, { tenant }, keys, cacheOf(ctx.pool));
  if (found !== undefined) return found;
  throw new MillraceError('not_found', `the definition of run ${run.id} is no longer on record`);
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
