/** Explains which limit a run waits at (instants of its job, runs of its task, or a pool), and which runs hold the places. */
import { shellWord } from '../../kernel/text/shell-word.ts';
import type { ApiContext } from '../context.ts';
import { findGate, type GateRow, type HolderRow, listActiveInstants, listHolders } from './queries.ts';
import { formatCount, type Finding, finding, nameOf, formatTime } from './findings.ts';

interface Waiting {
  readonly id: string;
  readonly gate: string;
  readonly lane: string;
  readonly rank: Date;
}

/** Returns undefined if the gate has been deleted meanwhile. */
export async function gateOf(ctx: ApiContext, run: Waiting): Promise<Finding | undefined> {
  const gate = await findGate(ctx.db, run);
  if (gate === undefined) return undefined;
  if (gate.kind === 'job') return byInstants(ctx, gate);
  const holders = await listHolders(ctx.db, gate.id, run.lane);
  return gate.kind === 'task' ? byTask(gate, holders) : byPool(gate, holders);
}

async function byInstants(ctx: ApiContext, gate: GateRow): Promise<Finding> {
  const active = await listActiveInstants(ctx.db, gate.id);
  const first =
    active[0] === undefined ? '' : `, among them ${formatTime(active[0].instant)} since ${formatTime(active[0].since)}`;
  const message = `its job may have ${formatCount(gate.capacity ?? gate.used, 'active instant')}, and has ${gate.used}${first}`;
  const next = 'it continues when an active instant ends; max_active_instants of the job sets the limit';
  return finding('job_limit', message, { ...limitOf(gate), instants: active }, next);
}

function byTask(gate: GateRow, holders: readonly HolderRow[]): Finding {
  const message = `its task may have ${formatCount(gate.capacity ?? gate.used, 'run')} at once, and has ${gate.used}`;
  const next = 'it continues when one of them ends; max_running of the task sets the limit';
  return finding('task_limit', message, { ...limitOf(gate), holders: holders.map(renderHolder) }, next);
}

function byPool(gate: GateRow, holders: readonly HolderRow[]): Finding {
  const name = gate.name ?? gate.id;
  const data = { ...limitOf(gate), pool: name, holders: holders.map(renderHolder) };
  const set = `millrace pool set ${shellWord(name)} N`;
  if (gate.capacity === 0) {
    return finding('pool_full', `the pool ${name} has no places`, data, `${set} gives it places`);
  }
  const some = [...new Set(holders.map(nameOfHolder))].slice(0, 3);
  const held = some.length === 0 ? '' : `, by ${some.join(', ')}`;
  const taken = `${gate.used} of ${gate.capacity ?? gate.used} places of the pool ${name} are taken`;
  return finding('pool_full', taken + held, data, `it continues when a place is free; ${set} gives the pool more`);
}

function limitOf({ id, capacity, used, before }: GateRow): Record<string, unknown> {
  return { gate: id, capacity, used, before };
}

function renderHolder(holder: HolderRow): Record<string, unknown> {
  const { run, instant, running } = holder;
  return { run, instant, running, name: nameOfHolder(holder) };
}

function nameOfHolder({ run, task, node }: HolderRow): string {
  if (task !== null) return nameOf('task', task);
  return node === null ? `run ${run}` : `${node.name} of the execution ${node.execution}`;
}
