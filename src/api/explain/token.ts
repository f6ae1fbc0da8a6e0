/**
 * Explains why a task ran at an instant, or why it has not. If the token has a run, the explanation of the run is used. Else
 * the token waits for counts, and each parent is judged: whether it has counted, and whether it still can.
 */
import { shellWord } from '../../kernel/text/shell-word.ts';
import type { ApiContext } from '../context.ts';
import { requireFound } from '../context.ts';
import { schedulerAway } from './fleet.ts';
import {
  type ExplainedToken,
  listJobTriggers,
  listParents,
  listParentTriggers,
  type TriggerAt,
} from './graph-queries.ts';
import { blockedChain, judgeParent, type Judged } from './parents.ts';
import { pauseOf } from './pause.ts';
import { findExplainedRun, findJobEvent, maxListed } from './queries.ts';
import { explainRun, removedTask } from './run.ts';
import { judgeInstant, nextOf } from './trigger.ts';
import { formatCount, type Finding, finding, type Findings, jobNameOf, nameOf, formatTime } from './findings.ts';

export async function explainToken(ctx: ApiContext, token: ExplainedToken): Promise<Findings> {
  if (token.instant === null) return neverBegun(ctx, token);
  if (token.state === 'waiting' || token.run === null) return whyWaiting(ctx, { ...token, instant: token.instant });
  const run = requireFound(await findExplainedRun(ctx.db, token.run), 'run', token.run);
  const { findings, chain } = await explainRun(ctx, run);
  const more = token.count > 0 ? [countedAgain(token)] : [];
  if (token.state !== 'retry') return { state: token.state, findings: [...findings, ...more], chain };
  return { state: 'retry', findings: [...(await retryFirst(ctx, token, findings)), ...more], chain };
}

function countedAgain({ count, threshold }: ExplainedToken): Finding {
  const message = `for a further run it has ${count} of the ${formatCount(threshold, 'count')} it needs`;
  return finding('counting', message, { count, threshold });
}

/** The next attempt comes before the end of the last one. A retry of a paused job becomes a run that waits. */
async function retryFirst(ctx: ApiContext, token: ExplainedToken, findings: readonly Finding[]): Promise<Finding[]> {
  const [pause, scheduler] = await Promise.all([token.paused ? pauseOf(ctx, token) : undefined, schedulerAway(ctx)]);
  const retry = findings.filter(({ code }) => code === 'retry_scheduled');
  const rest = findings.filter(({ code }) => code !== 'retry_scheduled');
  return [...retry, ...[pause, scheduler].flatMap((each) => each ?? []), ...rest];
}

type TokenAt = ExplainedToken & { readonly instant: Date };

async function whyWaiting(ctx: ApiContext, token: TokenAt): Promise<Findings> {
  const { id, instant } = token;
  const [parents, triggers, chain] = await Promise.all([
    listParents(ctx.db, id, instant),
    listParentTriggers(ctx.db, id, instant),
    blockedChain(ctx, token),
  ]);
  const own = await ownObstacles(ctx, token, parents.length + triggers.length);
  const nowMs = ctx.time.now();
  const judged = [
    ...triggers.map((trigger) => judgeTrigger(trigger, token, nowMs)),
    ...parents.map((parent) => judgeParent(parent, token, token.cleared_at)),
  ];
  const missing = judged.flatMap((each) => each.finding ?? []);
  const full = token.count >= token.threshold;
  const counting = full || token.removed ? [] : [countsOf(token, judged)];
  return { state: 'waiting', findings: [...own, ...counting, ...missing.slice(0, maxListed)], chain };
}

/** A trigger fires an instant once per cause, so it does not count again after a clear. */
function judgeTrigger(trigger: TriggerAt, token: TokenAt, nowMs: number): Judged {
  const name = nameOf('trigger', trigger, token);
  const { state, finding: verdict } = judgeInstant(trigger, name, nowMs);
  const judged = { name, kind: 'trigger' as const, instant: trigger.instant };
  if (state !== 'fired') return { ...judged, finding: verdict };
  if (token.cleared_at === null || token.count > 0) return { ...judged, finding: undefined };
  const message = `${name} fired for ${formatTime(trigger.instant)} before the clear, and does not fire for it again`;
  return { ...judged, finding: finding('trigger_counted_before', message, verdict.data, activation(token)) };
}

function activation(token: TokenAt): string {
  return `millrace activate ${jobNameOf(token)} ${shellWord(token.name)} ${formatTime(token.instant)} runs it anyway`;
}

function countsOf(token: TokenAt, judged: readonly Judged[]): Finding {
  const message = `it has ${token.count} of the ${formatCount(token.threshold, 'count')} it needs`;
  const parents = judged.slice(0, maxListed).map(({ name, kind, instant, finding: missing }) => ({
    name,
    kind,
    instant,
    counted: missing === undefined,
  }));
  return finding('counting', message, { count: token.count, threshold: token.threshold, parents });
}

/** Obstacles of the token itself, independent of its parents. */
async function ownObstacles(ctx: ApiContext, token: TokenAt, edges: number): Promise<Finding[]> {
  if (token.removed) return [removedTask(token)];
  const full = token.count >= token.threshold;
  const [pause, scheduler, clear] = await Promise.all([
    token.paused ? pauseOf(ctx, token) : undefined,
    schedulerAway(ctx),
    token.cleared_at === null ? undefined : clearOf(ctx, token, token.cleared_at),
  ]);
  return [
    pause,
    full && pause === undefined ? heldBack(token) : undefined,
    clear,
    edges === 0 && !full ? noParents(token) : undefined,
    edges > 0 && edges < token.threshold && !full ? outOfReach(token, edges) : undefined,
    scheduler,
  ].flatMap((each) => each ?? []);
}

function heldBack(token: TokenAt): Finding {
  const message = 'it has all the counts it needs and is released at the next check, within seconds';
  return finding('held', message, { count: token.count, threshold: token.threshold, held: token.held });
}

async function clearOf(ctx: ApiContext, token: TokenAt, at: Date): Promise<Finding> {
  const act = await findJobEvent(ctx.db, { job: token.job_id, type: 'tokens.cleared', at });
  const who = act?.actor === undefined || act.actor === null ? '' : ` by ${act.actor}`;
  return finding('cleared', `its count was cleared at ${formatTime(at)}${who}`, { at, actor: act?.actor ?? null });
}

function noParents(token: TokenAt): Finding {
  return finding(
    'no_parents',
    'no trigger or task leads to it: it runs only when a user activates it',
    {},
    activation(token),
  );
}

function outOfReach(token: TokenAt, edges: number): Finding {
  const message = `only ${formatCount(edges, 'edge')} ${edges === 1 ? 'leads' : 'lead'} to it, fewer than the ${token.threshold} counts it needs`;
  return finding('threshold_out_of_reach', message, { edges, threshold: token.threshold });
}

/** Neither the task nor its job has an instant yet. */
async function neverBegun(ctx: ApiContext, token: ExplainedToken): Promise<Findings> {
  const [triggers, pause, scheduler] = await Promise.all([
    listJobTriggers(ctx.db, token.job_id),
    token.paused && !token.removed ? pauseOf(ctx, token) : undefined,
    schedulerAway(ctx),
  ]);
  const nowMs = ctx.time.now();
  const coming = triggers.map((trigger) => {
    const { finding: next } = nextOf(trigger, undefined, nowMs);
    return { ...next, message: `${nameOf('trigger', trigger, token)}: ${next.message}` };
  });
  const never = finding(
    'never_begun',
    'no instant of its job has begun yet',
    { triggers: triggers.length },
    triggers.length === 0 ? `millrace run ${jobNameOf(token)}` : undefined,
  );
  const own = [token.removed ? removedTask(token) : undefined, pause, scheduler];
  return { state: 'waiting', findings: [...own.flatMap((each) => each ?? []), never, ...coming], chain: [] };
}
