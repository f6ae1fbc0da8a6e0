/** Loads executions: the newest snapshot of each, and the deltas since. One statement reads all of them, at one moment. */
import type { Pool } from 'pg';
import type { EngineContext } from '../../contract/context.ts';
import type { Execution } from '../../contract/flows.ts';
import { Slices } from '../../kernel/process/slices.ts';
import { type Db, onPool, sql } from '../../kernel/sql.ts';
import { uuidArray } from '../../postgres/binary-array.ts';
import { type Delta, foldDeltas } from '../interpreter/delta.ts';
import { blankState, type FlowState } from '../interpreter/state.ts';
import { isObject, type Json, type JsonObject } from '../json.ts';
import { deltaOf, type Entry } from './entry.ts';
import {
  charsOf,
  documentsOf,
  type FlowRow,
  type LoadedFlow,
  loadFlow,
  withDocument,
  withFault,
} from './loaded-flow.ts';
import { bytesOf, commitFormat, type Memory, noTrackers, tallyOf } from './memory.ts';
import { unseal } from './sealing.ts';

type Reading = Pick<EngineContext, 'pool' | 'secrets'>;

/** The document of an execution of which steps were replaced, since a revision. */
export type OwnDocument = { readonly rev: number; readonly document: JsonObject };

type ExecutionRow = {
  readonly id: string;
  readonly rev: number;
  readonly status: number;
  readonly owner: string | null;
  readonly epoch: number;
  readonly flow_id: string;
  readonly version: number;
  readonly name: string;
  readonly project_id: string | null;
  readonly key: string | null;
  readonly parent: string | null;
  readonly parent_nid: string | null;
  readonly parent_attempt: number | null;
  readonly depth: number;
  readonly format: number;
  readonly own_document: OwnDocument | null;
  readonly snapshot: Json;
  readonly snapshot_chars: number | null;
  readonly entries: readonly Entry[] | null;
  readonly entry_chars: number | null;
  readonly trackers: readonly { readonly name: string; readonly topic: string }[] | null;
};

export async function fetchExecutions(ctx: Reading, ids: readonly string[]): Promise<Execution[]> {
  if (ids.length === 0) return [];
  const db = onPool(ctx.pool);
  const rows = await readRows(db, ids);
  const flows = await flowsOf(ctx, rows);
  const executions: Execution[] = [];
  const slices = new Slices();
  for (const row of rows) {
    const base = flows.get(versionOf(row));
    if (base === undefined) continue;
    const flow = row.own_document === null ? base : withOwnDocument(ctx.pool, base, row.id, row.own_document);
    executions.push(toExecution(ctx, row, flowOfRow(row, flow)));
    if (slices.isOver) await slices.pause();
  }
  return executions;
}

function readRows(db: Db, ids: readonly string[]): Promise<ExecutionRow[]> {
  return db.rows<ExecutionRow>(sql`
    select e.id, e.rev, e.status, e.owner, e.epoch, e.flow_id, e.version, f.name, f.project_id, e.key, e.parent, e.parent_nid,
           e.parent_attempt, e.depth, e.format, s.state as snapshot, octet_length(s.state::text) as snapshot_chars,
           d.entries, d.chars as entry_chars,
           case when e.own_document then (
             select json_build_object('rev', o.rev, 'document', o.document) from execution_document o
              where o.execution_id = e.id and o.rev <= e.rev order by o.rev desc limit 1
           ) end as own_document,
           case when e.calls > 0 then (
             select json_agg(json_build_object('name', t.name, 'topic', t.topic)) from tracker t where t.execution_id = e.id
           ) end as trackers
      from unnest(${uuidArray(ids)}::uuid[]) as u (id)
      join execution e on e.id = u.id
      join flow f on f.id = e.flow_id
      left join snapshot s on s.execution_id = e.id
     cross join lateral (
       select json_agg(c.entry order by c.rev) as entries, sum(octet_length(c.entry::text))::integer as chars
         from commit c
        where c.execution_id = e.id and c.rev > coalesce(s.rev, 0) and c.rev <= e.rev
     ) as d`);
}

/** Documents are read once per process: most executions are of flows that are known already. */
export async function flowsOf(
  { pool }: Pick<Reading, 'pool'>,
  rows: readonly FlowRow[],
): Promise<Map<string, LoadedFlow>> {
  const byVersion = new Map(rows.map((row) => [versionOf(row), row] as const));
  const documents = await documentsFor(pool, byVersion);
  const flows = new Map<string, LoadedFlow>();
  const slices = new Slices();
  for (const [key, row] of byVersion) {
    const flow = loadFlow(row, documents.get(key));
    flows.set(key, flow);
    // parses the document: a large one takes 100 ms, and many may be asked for at once
    void flow.functions;
    if (slices.isOver) await slices.pause();
  }
  return flows;
}

function versionOf({ flow_id, version }: Pick<FlowRow, 'flow_id' | 'version'>): string {
  return `${flow_id}/${version}`;
}

/** What is read here is used here, even if it is not kept. */
async function documentsFor(pool: Pool, rows: ReadonlyMap<string, FlowRow>): Promise<Map<string, unknown>> {
  const kept = documentsOf(pool);
  const documents = new Map<string, unknown>([...rows.keys()].map((key) => [key, kept.get(key)] as const));
  const missing = [...rows].flatMap(([key, row]) => (documents.get(key) === undefined ? [row] : []));
  if (missing.length === 0) return documents;
  const found = await onPool(pool).rows<{ flow_id: string; version: number; document: unknown }>(sql`
    select v.flow_id, v.version, v.document
      from unnest(${uuidArray(missing.map(({ flow_id }) => flow_id))}::uuid[],
                  ${missing.map(({ version }) => version)}::integer[]) as u (flow_id, version)
      join flow_version v on v.flow_id = u.flow_id and v.version = u.version`);
  for (const row of found) {
    documents.set(versionOf(row), row.document);
    if (isObject(row.document)) kept.keep(versionOf(row), row.document, charsOf(row.document));
  }
  return documents;
}

/** It is read each time, and parsed once. */
export function withOwnDocument(
  pool: Pool,
  base: LoadedFlow,
  execution: string,
  { rev, document }: OwnDocument,
): LoadedFlow {
  const kept = documentsOf(pool);
  const key = `${execution}/${rev}`;
  return withDocument(base, kept.get(key) ?? kept.keep(key, document, charsOf(document)));
}

function toExecution({ secrets }: Reading, row: ExecutionRow, flow: LoadedFlow): Execution {
  const { id, rev, owner, epoch } = row;
  const from = row.snapshot === null ? blankState : (unseal(secrets, row.snapshot) as unknown as FlowState);
  const state = foldDeltas(readDeltas(row.entries ?? [], secrets), from);
  const chars = { deltaChars: row.entry_chars ?? 0, snapshotChars: row.snapshot_chars ?? 0 };
  const memory: Memory = {
    flow,
    key: row.key,
    parent: parentOf(row),
    depth: row.depth,
    isStored: true,
    state,
    ...chars,
    tally: tallyOf(flow.parsed.ok ? flow.parsed.flow : null, state.nodes),
    trackers:
      row.trackers === null ? noTrackers : Object.fromEntries(row.trackers.map(({ name, topic }) => [name, topic])),
  };
  return {
    id,
    rev,
    owner,
    epoch,
    over: row.status > 2,
    bytes: bytesOf(memory),
    functions: flow.functions,
    sealed: memory,
  };
}

/** Executions that a newer release has written are refused, not misread. */
function flowOfRow({ format }: ExecutionRow, flow: LoadedFlow): LoadedFlow {
  if (format <= commitFormat) return flow;
  return withFault(flow, `a newer release has written this execution, in format ${format}`);
}

export function readDeltas(entries: readonly Entry[], secrets: Reading['secrets']): Delta[] {
  return entries.map((entry) => deltaOf(secrets, entry));
}

function parentOf({ parent, parent_nid: nid, parent_attempt: attempt }: ExecutionRow): Memory['parent'] {
  return parent === null || nid === null ? null : { execution: parent, nid, attempt: attempt ?? 1 };
}
