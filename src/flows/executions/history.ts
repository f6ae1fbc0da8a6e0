/** The history of an execution: its commits, each with the message, the changes and what left. */
import type { EngineContext } from '../../contract/context.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import type { Delta } from '../interpreter/delta.ts';
import { isObject, type Json, type JsonObject } from '../json.ts';
import { deltaOf, type Entry } from './entry.ts';

export interface HistoryEntry {
  readonly rev: number;
  readonly at: Date;
  /** Null: a machine. */
  readonly actor: string | null;
  /** The conductor that committed. */
  readonly member: string | null;
  readonly message: HistoryMessage;
  readonly delta: Delta;
  /** Tasks, calls, signals and stops, without their values. */
  readonly out: readonly JsonObject[];
}

interface HistoryMessage {
  readonly id: string;
  readonly point: string;
  readonly nid: string | null;
  /** Of a timer: when it was due. */
  readonly plannedAt: Date | null;
  readonly bornAt: Date | null;
  /** Of a signal its name, of an operation its action, of an answer its outcome, of a timer its name, of a fork its original. */
  readonly summary: string | null;
}

type CommitRow = {
  readonly rev: number;
  readonly at: Date;
  readonly actor: string | null;
  readonly member: string | null;
  readonly entry: Entry;
};

/** Oldest first. `after`: the last revision of the page before. */
export async function readHistory(
  { pool, secrets }: Pick<EngineContext, 'pool' | 'secrets'>,
  id: string,
  { after = 0, limit }: { readonly after?: number | undefined; readonly limit: number },
): Promise<HistoryEntry[]> {
  const rows = await onPool(pool).rows<CommitRow>(sql`
    select rev, at, actor, member, entry
      from commit
     where execution_id = ${id}::uuid and rev > ${after}
     order by rev
     limit ${limit}`);
  return rows.map(({ entry, ...row }) => ({
    ...row,
    message: toMessage(entry.m),
    delta: deltaOf(secrets, entry),
    out: entry.out,
  }));
}

function toMessage(m: JsonObject): HistoryMessage {
  const text = (name: string): string | null => (typeof m[name] === 'string' ? m[name] : null);
  const time = (name: string): Date | null => (typeof m[name] === 'number' ? new Date(m[name]) : null);
  return {
    id: text('id') ?? '',
    point: text('point') ?? '',
    nid: text('nid'),
    plannedAt: time('planned'),
    bornAt: time('born'),
    summary: text('name') ?? text('action') ?? text('outcome') ?? text('timer') ?? forkText(m['forked']),
  };
}

function forkText(forked: Json | undefined): string | null {
  if (forked === undefined || !isObject(forked)) return null;
  const { execution, rev } = forked as { readonly execution: string; readonly rev: number };
  return `fork of ${execution} at ${rev}`;
}
