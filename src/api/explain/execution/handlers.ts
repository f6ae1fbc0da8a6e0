/**
 * Explains where an execution of a flow is: what it waits for, since when, and what would move it; who launched it, and which
 * executions called each other until it. Everything is read from the current tables.
 *
 * Obstacles come first: no conductor, a tenant that is off, a pause, incidents. Then come its steps, and its cause comes last.
 */
import { maskSealed } from '../../../flows/executions/masking.ts';
import { readExecution, type StoredExecution } from '../../../flows/executions/stored.ts';
import type { Step } from '../../../flows/language/step.ts';
import type { ApiContext } from '../../context.ts';
import { requireFound } from '../../context.ts';
import { workKey } from '../../executions/views/nodes.ts';
import { listWork } from '../../executions/views/queries.ts';
import { makeWaitReader } from '../../executions/views/waits.ts';
import { type Explanation, explanationOf, type Finding, finding, formatCount, formatTime } from '../findings.ts';
import { schedulerAway } from '../fleet.ts';
import { traceExecution } from './chain.ts';
import { explainEnd } from './end.ts';
import { findLastEvent, findStoredMessages, listOpenItems, type StoredMessages } from './queries.ts';
import { explainStep, type StepSurroundings, type WaitingStep } from './steps.ts';

/** Steps that are explained; the others are counted. */
const maxSteps = 10;

export async function explainExecution(ctx: ApiContext, id: string): Promise<Explanation> {
  const found = requireFound(await readExecution(ctx, id.toLowerCase()), 'execution', id);
  const stored = { ...found, state: maskSealed(found.flow, found.state) };
  const { head } = stored;
  const subject = {
    kind: 'execution' as const,
    id: head.id,
    name: `${head.flow} ${head.key ?? head.id}`,
    instant: null,
    job: null,
  };
  const [{ cause, chain }, findings] = await Promise.all([
    traceExecution(ctx, head),
    head.endedAt === null ? explainLive(ctx, stored) : explainEnd(ctx, stored),
  ]);
  return explanationOf(subject, { state: head.status, findings: [...findings, ...cause], chain });
}

async function explainLive(ctx: ApiContext, stored: StoredExecution): Promise<Finding[]> {
  const { head, state } = stored;
  const [conductors, messages, off] = await Promise.all([
    ctx.directory.conductors?.(),
    findStoredMessages(ctx.db, head.id),
    schedulerAway(ctx),
  ]);
  const obstacles = [
    ...(conductors?.length === 0 ? [noConductor] : []),
    ...(off === undefined ? [] : [tenantOff]),
    ...(state.isPaused ? [await explainPause(ctx, head.id)] : []),
  ];
  const steps = await explainSteps(ctx, stored, { conductors });
  return [...obstacles, ...explainMessages(stored, messages), ...steps, ...explainEarly(stored)];
}

const noConductor = finding(
  'no_conductor',
  'no conductor is running, so that nothing moves',
  {},
  'start one: millrace conductor, or millrace up',
);

const tenantOff = finding(
  'tenant_off',
  'no scheduler of this tenant is running; while the tenant is off, its executions stand still',
  {},
  'millrace status says why; millrace host starts one',
);

async function explainPause(ctx: ApiContext, id: string): Promise<Finding> {
  const act = await findLastEvent(ctx.db, id, 'execution.paused');
  const since = act === undefined ? '' : `since ${formatTime(act.at)}, by ${act.actor ?? 'someone'}`;
  const data = { actor: act?.actor ?? null, at: act?.at ?? null };
  const own = finding('execution_paused', `it is paused ${since}`.trim(), data, `millrace flow resume ${id}`);
  return { ...own, brief: since };
}

/** Messages that are stored, or wait in a paused or busy execution. */
function explainMessages({ head, state }: StoredExecution, { n, oldest, points }: StoredMessages): Finding[] {
  const findings: Finding[] = [];
  const since = oldest === null ? '' : `, the oldest since ${formatTime(oldest)}`;
  if (head.rev === 0)
    findings.push(
      finding('not_begun', `its launch is stored, and no conductor has taken it${since}`, { since: oldest }),
    );
  else if (n > 0) {
    const what = `${formatCount(n, 'message')} (${points.join(', ')}) ${n === 1 ? 'is' : 'are'} stored, and not taken yet${since}`;
    findings.push(finding('messages_waiting', what, { messages: n, points, since: oldest }));
  }
  if (state.left.length > 0) {
    const what = state.isPaused
      ? `${formatCount(state.left.length, 'message')} came during the pause, and will be taken after it`
      : 'it is being interpreted right now';
    findings.push(finding(state.isPaused ? 'messages_waiting' : 'executing', what, { left: state.left.length }));
  }
  return findings;
}

async function explainSteps(
  ctx: ApiContext,
  stored: StoredExecution,
  { conductors }: Pick<StepSurroundings, 'conductors'>,
): Promise<Finding[]> {
  const { head } = stored;
  const waiting = groupAlike(waitingSteps(stored));
  const shown = waiting.slice(0, maxSteps);
  const nids = shown.map(({ nid }) => nid);
  const [work, items] = await Promise.all([
    nids.length === 0 ? [] : listWork(ctx.db, head.id, nids),
    listOpenItems(ctx.db, head.id, new Date(ctx.time.now()), maxItems),
  ]);
  const runs = new Map(
    work.flatMap((row) => (row.kind === 'run' ? [[workKey(row.nid, row.attempt), row.id] as const] : [])),
  );
  const around: StepSurroundings = {
    execution: head.id,
    conductors,
    owner: head.owner,
    items: new Map(items.map((item) => [item.nid, item])),
  };
  const explained = await Promise.all(
    shown.map((step) => explainStep(ctx, { ...step, run: runs.get(workKey(step.nid, step.node.attempt)) }, around)),
  );
  const more = waiting.slice(maxSteps).reduce((sum, { alike }) => sum + alike + 1, 0);
  return [...explained.flat(), ...(more === 0 ? [] : [moreSteps(more)])];
}

/** Work items of an execution that are looked at. */
const maxItems = 1_000;

function moreSteps(more: number): Finding {
  return finding('waits_for_time', `${formatCount(more, 'other step')} wait as well`, { steps: more });
}

/** Incidents first, then work, then what only waits. */
const importance: readonly string[] = 'incident run task child human closing retry signal timer steps'.split(' ');

function waitingSteps({ flow, state, head }: StoredExecution): WaitingStep[] {
  const reader = makeWaitReader(flow, state, head);
  const steps = Object.entries(state.nodes).flatMap(([nid, node]): WaitingStep[] => {
    const waits = reader.waitsOf(nid);
    if (waits === null || waits.kind === 'steps') return [];
    const step = flow.byPosition.get(node.at);
    const path = step?.path ?? node.at;
    return [{ nid, node, path, name: nameStep(step, path), waits, run: undefined, alike: 0 }];
  });
  return steps.toSorted((a, b) => importance.indexOf(a.waits.kind) - importance.indexOf(b.waits.kind));
}

/** `approve (steps[0].sequence[1])`; only the place of a step that has no name. */
function nameStep(step: Step | undefined, path: string): string {
  if (step === undefined) return path;
  const { verb, title, tag } = step;
  const name = verb === 'task' || verb === 'call' ? title : (tag ?? (verb === 'on' ? `on ${title}` : ''));
  return name === '' ? path : `${name} (${path})`;
}

/** Items of an `each` that wait for the same are one step with a count. Each incident has an error of its own. */
function groupAlike(steps: readonly WaitingStep[]): WaitingStep[] {
  const groups = new Map<string, WaitingStep>();
  for (const step of steps) {
    const { nid, node, waits } = step;
    const key = waits.kind === 'incident' ? nid : JSON.stringify([node.at, waits.kind, waits.names]);
    const first = groups.get(key);
    groups.set(key, first === undefined ? step : { ...first, alike: first.alike + 1 });
  }
  return [...groups.values()];
}

function explainEarly({ state }: StoredExecution): Finding[] {
  if (state.early.length === 0) return [];
  const names = [...new Set(state.early.map(({ name }) => name))].slice(0, maxSteps);
  const message = `${formatCount(state.early.length, 'signal')} came that no step has waited for yet: ${names.join(', ')}`;
  return [finding('signals_early', message, { signals: state.early.length, names })];
}
