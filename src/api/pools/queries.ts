/** Statements about pools, which are gates of kind `pool` (0007). */
import { newId } from '../../kernel/id.ts';
import { type Db, type Sql, sql } from '../../kernel/sql.ts';

export type PoolRow = {
  readonly id: string;
  readonly name: string;
  readonly places: number;
  readonly used: number;
  readonly waiting: number;
};

const pools = (condition: Sql): Sql => sql`
    select g.id, g.name, g.capacity as places, g.used,
           (select count(*)::integer from live where live.gate = g.id) as waiting
      from gate g
     where g.kind = 'pool' and ${condition}
     order by g.name`;

export function listPools(db: Db, page: { after: string | undefined; limit: number }): Promise<PoolRow[]> {
  const further = page.after === undefined ? sql`true` : sql`g.name > ${page.after}`;
  return db.rows<PoolRow>(sql`${pools(further)} limit ${page.limit}`);
}

export function findPool(db: Db, name: string): Promise<PoolRow | undefined> {
  return db.maybeOne<PoolRow>(pools(sql`g.name = ${name}`));
}

/** Locks the pool for a change. Concurrent changes, and runs that pass the gate, wait. */
export function lockPool(db: Db, name: string): Promise<{ id: string; places: number } | undefined> {
  return db.maybeOne(sql`
    select id, capacity as places from gate where kind = 'pool' and name = ${name} for update`);
}

/** Returns undefined if the name exists. */
export async function insertPool(db: Db, name: string, places: number): Promise<string | undefined> {
  const row = await db.maybeOne<{ id: string }>(sql`
    insert into gate (id, kind, name, capacity)
    values (${newId()}, 'pool', ${name}, ${places})
    on conflict (name) do nothing
    returning id`);
  return row?.id;
}

export async function setPlaces(db: Db, id: string, places: number): Promise<void> {
  await db.exec(sql`update gate set capacity = ${places} where id = ${id}`);
}

/**
 * Waits for transactions that write limits, and blocks new ones until the commit. So a job that is being applied either has
 * already named the pool, or finds it deleted and creates it again.
 */
export async function holdGates(db: Db): Promise<void> {
  await db.exec(sql`lock table gate in share row exclusive mode`);
}

/** Some tasks that name it. */
export function namingTasks(
  db: Db,
  pool: string,
  limit: number,
): Promise<{ project: string; job: string; task: string }[]> {
  return db.rows(sql`
    select project.name as project, job.name as job, task.name as task
      from task
      join job on job.id = task.job_id
      join project on project.id = job.project_id
     where ${pool} = any (task.gates) and task.removed_at is null
     order by 1, 2, 3
     limit ${limit}`);
}

export async function deletePool(db: Db, id: string): Promise<void> {
  await db.exec(sql`delete from gate where id = ${id}`);
}
