/** Statements about work items. The store inserts them with the commit that begins a step, and ends them with the step. */
import { allOf, type Db, sql } from '../../kernel/sql.ts';
import type { Json } from '../json.ts';

export type Workitem = {
  readonly id: string;
  readonly execution: string;
  /** The name of the flow. */
  readonly flow: string;
  /** The node of the execution. */
  readonly nid: string;
  readonly attempt: number;
  /** The name of the task. */
  readonly name: string;
  readonly title: string;
  readonly assignee: string | null;
  readonly team: string | null;
  /** The fields as the author wrote them; empty: any answer is valid. */
  readonly form: Json;
  readonly input: Json;
  readonly dueAt: Date | null;
  /** The actor that has claimed it; null: nobody, or the claim is over. */
  readonly claimedBy: string | null;
  readonly claimedUntil: Date | null;
  readonly createdAt: Date;
  /** Null while it waits for an answer. */
  readonly endedAt: Date | null;
};

export interface WorkitemFilter {
  readonly assignee?: string | undefined;
  readonly team?: string | undefined;
  readonly execution?: string | undefined;
  /** Those that this actor has claimed, or that are assigned to one of these names. */
  readonly mine?: { readonly actor: string; readonly names: readonly string[] } | undefined;
  /** The last id of the previous page. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

const columns = sql`
         w.id, w.execution_id as execution, coalesce(f.name, '') as flow, w.nid, w.attempt, w.name, w.title, w.assignee, w.team,
         w.due_at as "dueAt", w.created_at as "createdAt", w.ended_at as "endedAt"`;
const joins = sql`
    left join execution e on e.id = w.execution_id
    left join flow f on f.id = e.flow_id`;

function claimColumns(at: Date) {
  return sql`
         case when w.claimed_until > ${at} then w.claimed_by end as "claimedBy",
         case when w.claimed_until > ${at} then w.claimed_until end as "claimedUntil"`;
}

/** Characters of forms and titles in one page. */
const maxPageChars = 1024 * 1024;

export interface WorkitemPage {
  /** Without their inputs. */
  readonly items: readonly Workitem[];
  readonly hasMore: boolean;
}

/** Work items that wait for an answer, the oldest first. A page ends at its limit, or with the first item beyond a megabyte. */
export async function listOpenWorkitems(db: Db, filter: WorkitemFilter, at: Date): Promise<WorkitemPage> {
  const { assignee, team, execution, mine, cursor, limit } = filter;
  const conditions = [
    sql`w.ended_at is null`,
    ...(assignee === undefined ? [] : [sql`w.assignee = ${assignee}`]),
    ...(team === undefined ? [] : [sql`w.team = ${team}`]),
    ...(execution === undefined ? [] : [sql`w.execution_id = ${execution}`]),
    ...(mine === undefined
      ? []
      : [
          sql`(w.assignee = any (${mine.names}::text[]) or (w.claimed_by = ${mine.actor} and w.claimed_until > ${at}))`,
        ]),
    ...(cursor === undefined ? [] : [sql`w.id > ${cursor}`]),
  ];
  const rows = await db.rows<Workitem & { found: number }>(sql`
    with page as materialized (
      select w.id, octet_length(w.form::text) + octet_length(w.title) as chars
        from workitem w
       where ${allOf(conditions)}
       order by w.id
       limit ${limit + 1}
    ),
    cut as (
      select id, sum(chars) over (order by id) - chars as chars_before, count(*) over ()::integer as found from page
    )
    select ${columns}, null::json as input, w.form, ${claimColumns(at)}, cut.found
      from cut
      join workitem w on w.id = cut.id ${joins}
     where cut.chars_before < ${maxPageChars}
     order by w.id
     limit ${limit}`);
  return { items: rows, hasMore: rows.length < (rows[0]?.found ?? 0) };
}

export function findWorkitem(db: Db, id: string, at: Date): Promise<Workitem | undefined> {
  return db.maybeOne<Workitem>(sql`
    select ${columns}, w.input, w.form, ${claimColumns(at)}
      from workitem w ${joins}
     where w.id = ${id}`);
}

/** The work item of an attempt of a node. */
export function findWorkitemOf(
  db: Db,
  { execution, nid, attempt }: { readonly execution: string; readonly nid: string; readonly attempt: number },
  at: Date,
): Promise<Workitem | undefined> {
  return db.maybeOne<Workitem>(sql`
    select ${columns}, w.input, w.form, ${claimColumns(at)}
      from workitem w ${joins}
     where w.execution_id = ${execution} and w.nid = ${nid} and w.attempt = ${attempt}`);
}

/** Claims it, or renews the claim, unless another actor has one. Returns whether that worked. */
export async function setClaim(
  db: Db,
  id: string,
  { actor, at, until }: { readonly actor: string; readonly at: Date; readonly until: Date },
): Promise<boolean> {
  const changed = await db.exec(sql`
    update workitem
       set claimed_by = ${actor}, claimed_until = ${until}
     where id = ${id} and ended_at is null
       and (claimed_by is null or claimed_by = ${actor} or claimed_until <= ${at})`);
  return changed > 0;
}

/** Ends the claim of an actor. Returns whether it had one. */
export async function removeClaim(db: Db, id: string, actor: string): Promise<boolean> {
  const changed = await db.exec(sql`
    update workitem set claimed_by = null, claimed_until = null
     where id = ${id} and ended_at is null and claimed_by = ${actor}`);
  return changed > 0;
}
