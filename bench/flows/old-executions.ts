/** Fills the tables with executions that ended long ago: copies of one that the product has made, each with its own id. */
import { type Db, sql } from '../../src/kernel/sql.ts';

const perStatement = 50_000;
const ageDays = 10;

export async function addOldExecutions(db: Db, sample: string, count: number): Promise<void> {
  for (let done = 0; done < count; done += perStatement) {
    const part = Math.min(perStatement, count - done);
    await db.exec(sql`
      with made as materialized (
        select gen_random_uuid() as id, make_interval(days => ${ageDays}, secs => n) as age
          from generate_series(1, ${part}::integer) n
      ),
      heads as (
        insert into execution (id, rev, commit_id, epoch, owner, status, flow_id, version, depth, format, created_at,
                               updated_at, ended_at)
        select m.id, e.rev, e.commit_id, e.epoch, e.owner, e.status, e.flow_id, e.version, e.depth, e.format,
               e.created_at - m.age, e.updated_at - m.age, e.ended_at - m.age
          from made m, execution e
         where e.id = ${sample}
      )
      insert into commit (execution_id, rev, commit_id, member, at, actor, entry)
      select m.id, c.rev, c.commit_id, c.member, c.at - m.age, c.actor, c.entry
        from made m, commit c
       where c.execution_id = ${sample}`);
  }
  await db.exec(sql`analyze execution, commit`);
}
