/** Executions as they are stored, at any revision, for people who look at them. */
import type { EngineContext } from '../../contract/context.ts';
import { MillraceError } from '../../errors.ts';
import { type Db, onPool, sql } from '../../kernel/sql.ts';
import { foldDeltas } from '../interpreter/delta.ts';
import { blankState, type FlowState } from '../interpreter/state.ts';
import type { Json, JsonObject } from '../json.ts';
import type { Flow } from '../language/step.ts';
import type { Entry } from './entry.ts';
import { type Head, headColumns, type HeadRow, toHead } from './heads.ts';
import { flowsOf, type OwnDocument, readDeltas, withOwnDocument } from './load.ts';
import { unseal } from './sealing.ts';

export interface StoredExecution {
  /** As it is now, whatever the revision that is asked for. */
  readonly head: Head;
  readonly flow: Flow;
  readonly document: JsonObject;
  /** Whether the document is its own, because a part of its tree was swapped. */
  readonly ownDocument: boolean;
  readonly state: FlowState;
}

type StoredRow = HeadRow & {
  readonly project_id: string | null;
  readonly own: OwnDocument | null;
  readonly snapshot: Json;
  readonly snapshot_rev: number | null;
  readonly entries: readonly Entry[] | null;
};

/**
 * The execution as at a revision, by default the newest. Undefined: there is none. Throws if the commits that lead to an old revision
 * are not kept any more.
 */
export async function readExecution(
  ctx: Pick<EngineContext, 'pool' | 'secrets'>,
  id: string,
  rev?: number,
): Promise<StoredExecution | undefined> {
  const row = await readRow(onPool(ctx.pool), id, rev);
  if (row === undefined) return undefined;
  const head = toHead(row);
  const at = rev ?? head.rev;
  if (at > head.rev) throw new MillraceError('not_found', `the execution is at revision ${head.rev}, not at ${at} yet`);
  const entries = row.entries ?? [];
  if (entries.length !== at - (row.snapshot_rev ?? 0))
    throw new MillraceError('not_found', `revision ${at} is not kept any more; ask for a newer one`);
  const flows = await flowsOf(ctx, [{ ...row, name: row.flow }]);
  const base = flows.get(`${row.flow_id}/${row.version}`);
  if (base === undefined) return undefined;
  const { parsed, document } = row.own === null ? base : withOwnDocument(ctx.pool, base, id, row.own);
  if (!parsed.ok) throw new MillraceError('not_supported', parsed.detail);
  const from = row.snapshot === null ? blankState : (unseal(ctx.secrets, row.snapshot) as unknown as FlowState);
  return {
    head,
    flow: parsed.flow,
    document,
    ownDocument: row.own !== null,
    state: foldDeltas(readDeltas(entries, ctx.secrets), from),
  };
}

function readRow(db: Db, id: string, rev: number | undefined): Promise<StoredRow | undefined> {
  const at = sql`coalesce(${rev ?? null}::integer, e.rev)`;
  return db.maybeOne<StoredRow>(sql`
    select ${headColumns}, f.project_id, s.state as snapshot, s.rev as snapshot_rev,
           (select json_agg(c.entry order by c.rev) from commit c
             where c.execution_id = e.id and c.rev > coalesce(s.rev, 0) and c.rev <= ${at}) as entries,
           (select json_build_object('rev', o.rev, 'document', o.document) from execution_document o
             where o.execution_id = e.id and o.rev <= ${at} order by o.rev desc limit 1) as own
      from execution e
      join flow f on f.id = e.flow_id
      left join snapshot s on s.execution_id = e.id and s.rev <= ${at}
     where e.id = ${id}::uuid`);
}
