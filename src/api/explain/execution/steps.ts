/** Findings about the live steps of an execution: what each waits for, and what would move it. */
import type { ConductorInfo } from '../../../contract/context.ts';
import type { Head } from '../../../flows/executions/heads.ts';
import { readHeads } from '../../../flows/executions/heads.ts';
import type { FlowNode } from '../../../flows/interpreter/state.ts';
import type { ApiContext } from '../../context.ts';
import type { Waits } from '../../executions/views/waits.ts';
import { type Finding, finding, formatCount, formatTime } from '../findings.ts';
import { notAllowed } from '../fleet.ts';
import { findExplainedRun } from '../queries.ts';
import { explainRun } from '../run.ts';
import type { OpenItem } from './queries.ts';

/** A live step that waits for something other than the steps inside it. */
export interface WaitingStep {
  readonly nid: string;
  readonly node: FlowNode;
  readonly path: string;
  /** In sentences: `approve (steps[0])`. */
  readonly name: string;
  readonly waits: Waits;
  /** The run of a worker that performs it. */
  readonly run: string | undefined;
  /** Further visits of the step that wait for the same. */
  readonly alike: number;
}

export interface StepSurroundings {
  readonly execution: string;
  readonly conductors: readonly ConductorInfo[] | undefined;
  readonly owner: string | null;
  readonly items: ReadonlyMap<string, OpenItem>;
}

/** The most important finding of a step comes first. */
export async function explainStep(ctx: ApiContext, step: WaitingStep, around: StepSurroundings): Promise<Finding[]> {
  const [own, ...others] = await explainOne(ctx, step, around);
  if (own === undefined || step.alike === 0) return own === undefined ? [] : [own, ...others];
  const message = `${own.message}; ${formatCount(step.alike, 'other item')} of it ${step.alike === 1 ? 'does' : 'do'} so too`;
  return [{ ...own, message, data: { ...own.data, alike: step.alike } }, ...others];
}

async function explainOne(ctx: ApiContext, step: WaitingStep, around: StepSurroundings): Promise<Finding[]> {
  const { waits } = step;
  switch (waits.kind) {
    case 'incident':
      return [explainIncident(step, around.execution)];
    case 'task':
      return [explainFunction(ctx, step, around)];
    case 'run':
      return explainRunOf(ctx, step);
    case 'human':
      return [explainPerson(step, around.items.get(step.nid))];
    case 'child':
      return [await explainChild(ctx, step)];
    case 'signal':
      return [explainSignal(step, around.execution)];
    case 'timer':
      return [finding('waits_for_time', `${step.name} waits for ${waits.message}`, dataOf(step))];
    case 'retry':
      return [explainRetry(step, around.execution)];
    case 'closing':
      return [finding('closing', `${step.name} is being ended: it waits for ${waits.message}`, dataOf(step))];
    case 'steps':
      return [];
    default:
      return waits.kind satisfies never;
  }
}

function dataOf({ nid, path, node, waits }: WaitingStep): Record<string, unknown> {
  const until = waits.untilMs === null ? null : new Date(waits.untilMs).toISOString();
  const since = new Date(node.since).toISOString();
  return { node: nid, path, attempt: node.attempt, names: waits.names, since, until };
}

function explainIncident(step: WaitingStep, execution: string): Finding {
  const { nid, node, name } = step;
  const { code = 'failed', message = '' } = node.error ?? {};
  const words = message === '' ? code : `${code}: ${message.slice(0, 300)}`;
  return finding(
    'incident',
    `${name} failed (${words}), and nothing in the flow handles that`,
    { ...dataOf(step), code, message: message.slice(0, 1_000) },
    `repair the cause, then millrace flow retry ${execution} ${nid}; or go on without it: millrace flow skip ${execution} ${nid}`,
  );
}

function explainFunction(ctx: ApiContext, step: WaitingStep, { conductors, owner }: StepSurroundings): Finding {
  const forbidden = notAllowed(ctx, 'function', dataOf(step));
  if (forbidden !== undefined) return forbidden;
  const [name = ''] = step.waits.names;
  const since = formatTime(new Date(step.node.since));
  const hosts = conductors?.filter(({ functions }) => functions.includes(name));
  const data = {
    ...dataOf(step),
    function: name,
    conductors: conductors?.length ?? null,
    hosts: hosts?.length ?? null,
  };
  if (hosts?.length === 0)
    return finding(
      'function_unhosted',
      `no conductor that is running hosts the function ${name}, which ${step.name} has called since ${since}`,
      data,
      `start one that does: millrace conductor --functions FILE, or createConductor in your program`,
    );
  const isOrphaned = owner !== null && conductors !== undefined && !conductors.some(({ id }) => id === owner);
  const then = isOrphaned ? '; its conductor is gone, and another one calls it again' : '';
  return finding('waits_for_function', `${step.name} waits for ${step.waits.message}, called at ${since}${then}`, data);
}

/** The reasons of the run explain the step. */
async function explainRunOf(ctx: ApiContext, step: WaitingStep): Promise<Finding[]> {
  const found = step.run === undefined ? undefined : await findExplainedRun(ctx.db, step.run);
  const data = { ...dataOf(step), run: step.run ?? null };
  const own = finding('waits_for_run', `${step.name} waits for ${step.waits.message}`, data);
  if (found === undefined) return [own];
  const { findings } = await explainRun(ctx, found);
  return [own, ...findings.filter(({ code }) => code !== 'performs_step')];
}

function explainPerson(step: WaitingStep, item: OpenItem | undefined): Finding {
  const who = item?.claimed_by ?? item?.assignee ?? (item?.team == null ? null : `the team ${item.team}`);
  const claimed = item?.claimed_by == null ? '' : ', who has claimed it,';
  const due = item?.due_at == null ? '' : `, due at ${formatTime(item.due_at)}`;
  const message = `${step.name} waits for ${who ?? 'somebody'}${claimed} to answer ${step.waits.names[0] ?? ''}${due}`;
  const data = {
    ...dataOf(step),
    workitem: item?.id ?? null,
    assignee: item?.assignee ?? null,
    team: item?.team ?? null,
    claimed_by: item?.claimed_by ?? null,
    due_at: item?.due_at ?? null,
  };
  const next =
    item === undefined
      ? undefined
      : `millrace workitems answer ${item.id} FIELD=VALUE; its form: millrace workitems show ${item.id}`;
  return finding('waits_for_person', message, data, next);
}

async function explainChild(ctx: ApiContext, step: WaitingStep): Promise<Finding> {
  const call = step.node.memory?.['call'];
  const id = typeof call === 'string' ? call : undefined;
  const [child] = id === undefined ? [] : await readHeads(ctx.db, [id]);
  const name = step.waits.names[0] ?? '';
  const data = { ...dataOf(step), execution: id ?? null, status: child?.status ?? null };
  if (child === undefined)
    return finding('waits_for_child', `${step.name} waits for the flow ${name}, which has not begun`, data);
  const message = `${step.name} waits for the execution ${child.id} of ${child.flow}, which is ${statusWords[child.status]}`;
  return finding('waits_for_child', message, data, `millrace why ${child.id}`);
}

const statusWords: Readonly<Record<Head['status'], string>> = {
  running: 'running',
  waiting: 'waiting',
  paused: 'paused',
  incident: 'waiting for the repair of an incident',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

function explainSignal(step: WaitingStep, execution: string): Finding {
  const { names, message } = step.waits;
  const next = names[0] === undefined ? undefined : `millrace flow signal ${execution} ${names[0]}`;
  return finding('waits_for_signal', `${step.name} waits for ${message}`, dataOf(step), next);
}

function explainRetry(step: WaitingStep, execution: string): Finding {
  const next = `at once: millrace flow retry ${execution} ${step.nid}`;
  return finding('waits_for_retry', `${step.name} tries again: ${step.waits.message}`, dataOf(step), next);
}
