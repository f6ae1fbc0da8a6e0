/**
 * A tenant with a past: a thousand jobs of five tasks in a row. Ten of them run every minute and make half of all runs.
 * The rows are inserted in the order in which the product would have written them, with tokens, firings and events.
 */
import type { Client, Pool } from 'pg';
import { migrateTenant } from '../src/tenants/install.ts';
import { engine } from '../src/engine/engine.ts';
import { applyJob } from '../src/jobs/apply.ts';
import { parseJob } from '../src/jobs/document/parse-job.ts';
import { type Db, onPool, sql } from '../src/kernel/sql.ts';
import type { Address } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';
import { openPool } from '../src/postgres/pool/pool.ts';
import { addEventPartitions } from './copied-rows.ts';

const busyJobs = 10;
const tasksPerJob = 5;
const projects = 20;
/** Events are written for the newest runs only, one each. */
const newestEvents = 2_000_000;

export interface Past {
  readonly runs: number;
  readonly jobs: number;
}

export async function makeHistory(address: Address, past: Past, progress: (line: string) => void): Promise<void> {
  await migrateTenant(address, engine);
  progress(`applying ${past.jobs} jobs`);
  const pool = openHistory(address);
  await applyJobs(onPool(pool), past.jobs);
  await pool.end();
  await withClient(address, (client) => writePast(client, past, progress));
}

export function openHistory(address: Address): Pool {
  return openPool({
    address,
    schema: 'millrace',
    application: 'millrace bench',
    max: 4,
    allowPooler: false,
    onError: () => {},
  });
}

async function applyJobs(db: Db, jobs: number): Promise<void> {
  const at = new Date();
  await db.exec(sql`
    insert into project (id, name, description, created_at, updated_at)
    select new_id(), 'project ' || n, '', ${at}, ${at} from generate_series(0, ${projects - 1}::integer) as n`);
  const left = Array.from({ length: jobs }, (_, n) => n);
  const work = async (): Promise<void> => {
    for (let n = left.pop(); n !== undefined; n = left.pop()) await applyOne(db, n, at);
  };
  await Promise.all(Array.from({ length: 4 }, work));
}

async function applyOne(db: Db, number: number, at: Date): Promise<void> {
  const parsed = parseJob({
    project: `project ${number % projects}`,
    name: `job ${String(number).padStart(4, '0')}`,
    triggers: [{ name: 't', start: '2020-01-01T00:00:00Z', period: number < busyJobs ? '1m' : '1h' }],
    tasks: Array.from({ length: tasksPerJob }, (_, i) => ({
      name: `task ${i}`,
      depends: [i === 0 ? 'trigger/t' : `task/task ${i - 1}`],
    })),
  });
  if (!parsed.ok) throw new Error(`invalid job document: ${JSON.stringify(parsed.faults)}`);
  await applyJob(db, { definition: parsed.job, warnings: [], actor: 'bench', at, dryRun: false });
}

/** Writes the past. Indexes of `run` other than its primary key are dropped first and recreated at the end. */
async function writePast(client: Client, { runs, jobs }: Past, progress: (line: string) => void): Promise<void> {
  await client.query(
    `set search_path to millrace; set synchronous_commit = off; set work_mem = '256MB'; set maintenance_work_mem = '512MB'`,
  );
  const { rows: indexes } = await client.query<{ name: string; made: string }>(`
    select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as made
      from pg_index i where i.indrelid = 'run'::regclass and not i.indisprimary`);
  for (const { name } of indexes) await client.query(`drop index ${name}`);
  progress('instants and firings');
  await client.query(
    `create temporary table past as
     select t.job_id, t.id as trigger_id, date_trunc('minute', clock_timestamp()) - n * t.period_ms * interval '1 ms' as instant
       from trigger t
       join job on job.id = t.job_id
      cross join lateral generate_series(0, $1::integer / (2 * ${tasksPerJob}
        * case when t.period_ms = 60000 then least(${busyJobs}, $2::integer) else greatest($2::integer - ${busyJobs}, 1) end) - 1) as n`,
    [runs, jobs],
  );
  await client.query(`insert into firing (trigger_id, instant, cause)
    select trigger_id, instant, 'schedule' from past order by instant`);
  await client.query(`update trigger t set earliest = m.first, latest = m.last
    from (select trigger_id, min(instant) as first, max(instant) as last from past group by 1) as m where m.trigger_id = t.id`);
  progress('tokens');
  await client.query(`insert into token (task_id, instant, count, fire, reach, priority)
    select k.id, p.instant, 0, 1, 1, 'normal' from past p join task k on k.job_id = p.job_id order by p.instant, k.name`);
  progress('runs');
  await client.query(pastRuns);
  progress('events and logs');
  await addEventPartitions(client, Math.min(runs, newestEvents));
  await client.query(`insert into event (seq, topic_id, type, subject, actor, at, body)
    select nextval('event_seq'), 3, 'run.finished', r.id, 'worker', r.finished_at,
           end_body(r.task_id, r.task_id, r.instant, 1, 'normal', r.state, null, false)
      from (select n.* from (select * from run order by id desc limit ${newestEvents}) as n order by n.id) as r`);
  await client.query(`insert into log (run_id, lease, number, stream, at, data)
    select id, 1, 0, 'stdout', finished_at, 'hello' from run order by id desc limit 200000`);
  progress('indexes and vacuum');
  for (const { made } of indexes) await client.query(made);
  await client.query('vacuum analyze');
}

/** Each run is queued five seconds after its parent and takes under four seconds; 1 in 256 fails and 1 in 256 ends in error. */
const pastRuns = `
  insert into run (id, task_id, instant, origin, version, attempt, priority, lease, worker_id, state, queued_at,
                   started_at, finished_at)
  select (lpad(to_hex((extract(epoch from q.queued_at) * 1000)::bigint), 12, '0') || '7' || substr(q.noise, 1, 3) || '8'
          || substr(q.noise, 4, 15))::uuid,
         q.id, q.instant, 'token', 1, 1, 'normal', 1,
         ('00000000-0000-7000-8000-00000000000' || get_byte(decode(q.noise, 'hex'), 10) % 8)::uuid,
         (case get_byte(decode(q.noise, 'hex'), 11) when 0 then 'failure' when 1 then 'error' else 'success' end)::run_state,
         q.queued_at, q.queued_at + interval '5 ms', q.queued_at + get_byte(decode(q.noise, 'hex'), 12) * interval '15 ms'
    from (
      select k.id, p.instant, p.instant + (substr(k.name, 6)::integer * 5 + random()) * interval '1 s' as queued_at,
             md5(random()::text) as noise
        from past p join task k on k.job_id = p.job_id
       order by p.instant, k.name
    ) as q`;

/** Subjects of the lists: parts of the busiest job and of a quiet one, a worker, the newest run, the middle of the event log. */
export interface Points {
  readonly busy: Parts;
  readonly quiet: Parts;
  readonly worker: string;
  readonly run: string;
  readonly position: number;
}

export async function partsOf(db: Db): Promise<Points> {
  const quiet = `job ${String(busyJobs).padStart(4, '0')}`;
  const { run, position } = await db.one<{ run: string; position: number }>(sql`
    select (select id from run order by id desc limit 1) as run, (select max(seq) / 2 from event) as position`);
  const worker = '00000000-0000-7000-8000-000000000001';
  return { busy: await parts(db, 'job 0000'), quiet: await parts(db, quiet), worker, run, position };
}

export type Parts = { job: string; project: string; trigger: string; task: string; instant: string };

async function parts(db: Db, name: string): Promise<Parts> {
  const row = await db.one<Omit<Parts, 'instant'> & { instant: Date }>(sql`
    select job.id as job, job.project_id as project, trigger.id as trigger, task.id as task,
           (select token.instant from token where token.task_id = task.id order by token.instant desc limit 1 offset 20) as instant
      from job
      join trigger on trigger.job_id = job.id
      join task on task.job_id = job.id and task.name = 'task 0'
     where job.name = ${name}`);
  return { ...row, instant: row.instant.toISOString() };
}
