/**
 * Handlers that explain why something ran or has not run. A response has the state, one sentence, the reasons, and the chain of
 * causes. Everything is read from the current tables; nothing is stored for explanations.
 */
import { type ApiContext, type ApiHandlers, requireFound } from '../context.ts';
import type { explainEndpoints } from './endpoints.ts';
import { explainExecution } from './execution/handlers.ts';
import { explainStepOfRun } from './execution/step-of-run.ts';
import { findExplainedTrigger, findToken } from './graph-queries.ts';
import { findExplainedRun } from './queries.ts';
import { explainRun } from './run.ts';
import { explainToken } from './token.ts';
import { explainInstant, explainTrigger } from './trigger.ts';
import { type Explanation, explanationOf, nameOf, tokenIdOf } from './findings.ts';

async function ofRun(ctx: ApiContext, id: string): Promise<Explanation> {
  const run = requireFound(await findExplainedRun(ctx.db, id), 'run', id);
  const { task, instant } = run;
  const [findings, step] = await Promise.all([
    explainRun(ctx, run),
    task === null ? explainStepOfRun(ctx, run.id) : undefined,
  ]);
  const subject = {
    kind: 'run' as const,
    id: run.id,
    name: task === null ? (step?.name ?? null) : nameOf('task', task),
    instant: instant?.toISOString() ?? null,
    job: task?.job_id ?? null,
  };
  if (step === undefined) return explanationOf(subject, findings);
  const chain = [...findings.chain, ...step.chain];
  return explanationOf(subject, { ...findings, findings: [...findings.findings, step.finding], chain });
}

async function ofToken(ctx: ApiContext, id: string, wished: Date | undefined): Promise<Explanation> {
  const token = requireFound(await findToken(ctx.db, id, wished), 'task', id);
  const { instant, job_id: job } = token;
  const subject = {
    kind: 'token' as const,
    id: instant === null ? token.id : tokenIdOf(token.id, instant),
    name: nameOf('task', token),
    instant: instant?.toISOString() ?? null,
    job,
  };
  return explanationOf(subject, await explainToken(ctx, token));
}

async function ofTrigger(ctx: ApiContext, id: string, instant: Date | undefined): Promise<Explanation> {
  const trigger = requireFound(await findExplainedTrigger(ctx.db, id), 'trigger', id);
  const subject = {
    kind: 'trigger' as const,
    id: trigger.id,
    name: nameOf('trigger', trigger),
    instant: instant?.toISOString() ?? null,
    job: trigger.job_id,
  };
  const findings = instant === undefined ? explainTrigger(ctx, trigger) : explainInstant(ctx, trigger, instant);
  return explanationOf(subject, await findings);
}

export const explainHandlers: ApiHandlers<typeof explainEndpoints> = {
  'GET /api/explain/run/{id}': ({ params }, ctx) => ofRun(ctx, params.id),
  'GET /api/explain/token/{id}': ({ params }, ctx) => ofToken(ctx, params.id.task, params.id.instant),
  'GET /api/explain/execution/{id}': ({ params }, ctx) => explainExecution(ctx, params.id),
  'GET /api/explain/trigger/{id}': ({ params, query }, ctx) => ofTrigger(ctx, params.id, query.instant),
};
