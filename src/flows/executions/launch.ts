/** New executions: the flow and version that a launch names, and the execution at revision 0. */
import type { EngineContext } from '../../contract/context.ts';
import type { FlowMessage, LaunchBody } from '../../contract/flow-messages.ts';
import type { Blank } from '../../contract/flows.ts';
import { type Db, onPool, sql } from '../../kernel/sql.ts';
import { blankState } from '../interpreter/state.ts';
import { integerArray, textArray, uuidArray } from '../../postgres/binary-array.ts';
import { type FlowRow, type LoadedFlow } from './loaded-flow.ts';
import { flowsOf } from './load.ts';
import { bytesOf, type Memory, noTally, noTrackers } from './memory.ts';
import { launchOf } from './revisions/read-message.ts';

/** Keys are indexed. */
const maxKeyChars = 255;

type Named = Omit<FlowRow, 'document'> & { readonly newest: number };

export type Resolved =
  | { readonly ok: true; readonly launch: LaunchBody; readonly flow: LoadedFlow }
  | { readonly ok: false; readonly code: 'no_such_flow' | 'no_such_version' | 'bad_request'; readonly detail: string };

export async function blankExecutions(ctx: EngineContext, launches: readonly FlowMessage[]): Promise<Blank[]> {
  const resolved = await resolveLaunches(ctx, launches);
  return resolved.map((each, i) =>
    each.ok ? { ok: true, execution: blank(launches[i]?.execution ?? '', each) } : each,
  );
}

function blank(id: string, { launch, flow }: Extract<Resolved, { ok: true }>) {
  const memory: Memory = {
    flow,
    key: launch.key ?? null,
    parent: launch.parent ?? null,
    depth: launch.depth ?? 0,
    isStored: false,
    state: blankState,
    tally: noTally,
    trackers: noTrackers,
    deltaChars: 0,
    snapshotChars: 0,
  };
  return {
    id,
    rev: 0,
    owner: null,
    epoch: 0,
    over: false,
    bytes: bytesOf(memory),
    functions: flow.functions,
    sealed: memory,
  };
}

/** One statement for all of them, and a second one if a version is not known to this process yet. */
export async function resolveLaunches(
  { pool }: Pick<EngineContext, 'pool'>,
  launches: readonly FlowMessage[],
): Promise<Resolved[]> {
  const bodies = launches.map(launchOf);
  const wanted = new Map(bodies.flatMap((body) => (body === undefined ? [] : [[keyOf(body), body] as const])));
  const rows = await findFlows(onPool(pool), [...wanted.values()]);
  const flows = await flowsOf({ pool }, rows);
  const byName = new Map<string, Resolved>();
  for (const [i, [key, launch]] of [...wanted].entries()) byName.set(key, resolve(launch, rows[i], flows));
  return bodies.map((body) => {
    if (body === undefined) return bad('the launch needs the name of a flow');
    if ((body.key?.length ?? 0) > maxKeyChars) return bad(`a key has at most ${maxKeyChars} characters`);
    const found = byName.get(keyOf(body));
    if (found === undefined || !found.ok) return found ?? bad('the launch needs the name of a flow');
    return { ...found, launch: body };
  });
}

function keyOf({ flow, version, fork }: LaunchBody): string {
  return `${fork?.flowId ?? flow}/${version ?? ''}`;
}

function bad(detail: string): Resolved {
  return { ok: false, code: 'bad_request', detail };
}

function resolve(launch: LaunchBody, row: Named | undefined, flows: ReadonlyMap<string, LoadedFlow>): Resolved {
  if (row === undefined || row.flow_id === null)
    return { ok: false, code: 'no_such_flow', detail: `there is no flow ${launch.flow}` };
  if (row.version === null) {
    const detail = `the flow ${launch.flow} has no version ${launch.version}; its newest is ${row.newest}`;
    return { ok: false, code: 'no_such_version', detail };
  }
  const flow = flows.get(`${row.flow_id}/${row.version}`);
  if (flow === undefined) return { ok: false, code: 'no_such_flow', detail: `there is no flow ${launch.flow}` };
  return { ok: true, launch, flow };
}

/** One row for each, in order. */
function findFlows(db: Db, launches: readonly LaunchBody[]): Promise<Named[]> {
  if (launches.length === 0) return Promise.resolve([]);
  return db.rows<Named>(sql`
    select flow_id, name, project_id, newest, version
      from find_flows(${textArray(launches.map(({ flow }) => flow))}::text[],
                      ${uuidArray(launches.map(({ fork }) => fork?.flowId ?? null))}::uuid[],
                      ${integerArray(launches.map(({ version }) => version ?? null))}::integer[])`);
}
