/** What a conductor asks about executions that it may take: timers that are due, and executions whose owner is gone or cannot go on. */
import type { EngineContext } from '../../contract/context.ts';
import type { Execution, HostedCall, Member, TimerMark } from '../../contract/flows.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import { uuidArray } from '../../postgres/binary-array.ts';
import { callOf } from './revisions/effects-of-run.ts';
import { hasMore, isAtWork, memoryOf } from './memory.ts';

type TimerRow = { readonly execution: string; readonly name: string; readonly generation: number; readonly due: Date };

/** Timers of paused executions are left out: they are held until the execution is resumed. */
export async function readDue(
  { pool }: EngineContext,
  { id, living }: Member,
  beforeMs: number,
  limit: number,
): Promise<TimerMark[]> {
  const rows = await onPool(pool).rows<TimerRow>(sql`
    select t.execution_id as execution, t.name, t.generation, t.due_at as due
      from timer t
      join execution e on e.id = t.execution_id
     where t.due_at < ${new Date(beforeMs)}::timestamptz and e.status <> 1
       and (e.owner is null or e.owner = ${id}::uuid or e.owner <> all (${uuidArray(living)}::uuid[]))
     order by t.due_at
     limit ${limit}`);
  return rows.map(({ due, ...mark }) => ({ ...mark, dueMs: due.getTime() }));
}

/**
 * Executions of owners that are not alive, with calls or left-over work that a new owner must repeat. It looks at all live executions of
 * these owners, so it is asked when conductors come and go, and not all the time.
 */
export async function readOrphans({ pool }: EngineContext, { living }: Member, limit: number): Promise<string[]> {
  const rows = await onPool(pool).rows<{ id: string }>(sql`
    with recursive owners as (
      (select owner from execution where status < 3 and owner is not null order by owner limit 1)
      union all
      select (select e.owner from execution e where e.status < 3 and e.owner > o.owner order by e.owner limit 1)
        from owners o
       where o.owner is not null
    )
    select e.id
      from owners o
     cross join lateral (
       select id from execution e where e.owner = o.owner and e.status < 3 and e.calls > 0 limit ${limit}
     ) as e
     where o.owner <> all (${uuidArray(living)}::uuid[])
     limit ${limit}`);
  return rows.map(({ id }) => id);
}

export async function readUnhosted(
  { pool }: EngineContext,
  functions: readonly string[],
  limit: number,
): Promise<string[]> {
  const rows = await onPool(pool).rows<{ id: string }>(sql`
    select distinct t.execution_id as id
      from tracker t
     where t.kind = 'function' and t.topic = any (${functions}::text[])
     limit ${limit}`);
  return rows.map(({ id }) => id);
}

/** Calls under way, and whether inner messages are left. */
export function readUnfinished(
  execution: Execution,
  hosted: ReadonlySet<string>,
): { readonly calls: HostedCall[]; readonly more: boolean } {
  const memory = memoryOf(execution);
  const more = hasMore(memory.state);
  const { parsed } = memory.flow;
  if (!parsed.ok || memory.tally.calls === 0) return { calls: [], more };
  const calls = Object.entries(memory.state.nodes).flatMap(([nid, node]) => {
    if (node.phase !== 'run' || !isAtWork(node)) return [];
    const step = parsed.flow.byPosition.get(node.at);
    if (step?.verb !== 'task' || step.work.kind !== 'hosted' || !hosted.has(step.name)) return [];
    const { name } = step;
    return [callOf(execution.id, memory, { nid, attempt: node.attempt, name, input: node.memory?.['input'] ?? null })];
  });
  return { calls, more };
}
