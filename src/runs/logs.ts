/** Stores output: chunks of runs that the sender still holds under that lease. A repeated chunk is stored once. */
import type { EngineContext } from '../contract/context.ts';
import type { FromWorker } from '../contract/engine.ts';
import type { LogChunk } from '../contract/wire.ts';
import { onPool, sql } from '../kernel/sql.ts';

export async function keepLogs(ctx: EngineContext, chunks: readonly FromWorker<LogChunk>[]): Promise<number> {
  const kept = await onPool(ctx.pool).exec(sql`
    insert into log (run_id, lease, number, stream, at, data)
    select c.run_id, c.lease, c.number, c.stream, c.at, decode(c.data, 'base64')
      from unnest(
        ${chunks.map((c) => c.run)}::uuid[],
        ${chunks.map((c) => c.lease)}::integer[],
        ${chunks.map((c) => c.number)}::integer[],
        ${chunks.map((c) => c.stream)}::text[],
        ${chunks.map((c) => c.at)}::timestamptz[],
        ${chunks.map((c) => c.data)}::text[],
        ${chunks.map((c) => c.worker ?? null)}::uuid[]
      ) as c (run_id, lease, number, stream, at, data, worker)
      join live on live.id = c.run_id and live.lease = c.lease and live.worker_id = coalesce(c.worker, live.worker_id)
     order by 1, 2, 3
    on conflict do nothing`);
  if (kept > 0) ctx.hints.send('logs');
  return kept;
}
