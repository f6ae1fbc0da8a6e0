/** Statements about definitions of flows: the rows of `flow` and `flow_version`. */
import { type Db, sql } from '../../kernel/sql.ts';

export type FlowRow = {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly project_id: string | null;
};

/** Locks the flow of this name, so that applications of it run one after another. */
export function lockFlow(db: Db, name: string): Promise<FlowRow | undefined> {
  return db.maybeOne<FlowRow>(sql`
    select id, name, version, project_id from flow where name = ${name} and deleted_at is null for update`);
}

export async function findProjectId(db: Db, name: string): Promise<string | undefined> {
  const row = await db.maybeOne<{ id: string }>(sql`
    select id from project where name = ${name} and deleted_at is null for share`);
  return row?.id;
}

/** The text of a document, as it was stored. */
export async function readDocumentText(db: Db, flowId: string, version: number): Promise<string | undefined> {
  const row = await db.maybeOne<{ document: string }>(sql`
    select document::text as document from flow_version where flow_id = ${flowId} and version = ${version}`);
  return row?.document;
}

export interface FlowWrite {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly projectId: string | null;
  readonly version: number;
  /** JSON. */
  readonly document: string;
  readonly actor: string;
  readonly at: Date;
}

/** Maximum characters of a description in lists. */
const listedChars = 1_000;

export async function writeVersion(db: Db, flow: FlowWrite): Promise<void> {
  const { id, name, description, projectId, version, document, actor, at } = flow;
  await db.exec(sql`
    insert into flow (id, name, description, project_id, version, created_at, updated_at)
    values (${id}, ${name}, left(${description}, ${listedChars}::integer), ${projectId}, ${version}, ${at}, ${at})
        on conflict (id) do update
       set description = excluded.description, project_id = excluded.project_id, version = excluded.version,
           updated_at = excluded.updated_at`);
  await db.exec(sql`
    insert into flow_version (flow_id, version, document, actor, at)
    values (${id}, ${version}, ${document}::json, ${actor}, ${at})`);
}

export async function markDeleted(db: Db, id: string, at: Date): Promise<void> {
  await db.exec(sql`update flow set deleted_at = ${at}, updated_at = ${at} where id = ${id}`);
}

/** The names that no flow has, of these. */
export async function findUnknownFlows(db: Db, names: readonly string[]): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select called.name
      from unnest(${names}::text[]) as called (name)
     where not exists (select from flow where flow.name = called.name and flow.deleted_at is null)`);
  return rows.map(({ name }) => name);
}

/** The names that no pool has, of these. */
export async function findUnknownPools(db: Db, names: readonly string[]): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select needed.name
      from unnest(${names}::text[]) as needed (name)
     where not exists (select from gate where gate.name = needed.name and gate.kind = 'pool')`);
  return rows.map(({ name }) => name);
}
