/**
 * The database of a Waterwheel installation, for imports.
 *
 * 1. Everything is read in one snapshot (repeatable read), so positions of triggers and counts of tokens belong together.
 * 2. Nothing is written: the transaction is read-only.
 * 3. Waterwheel has no version in its schema, so the columns that are read are checked first.
 */
import { Client } from 'pg';
import { MillraceError } from '../errors.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import { addressOfUrl, clientConfig, describe } from '../postgres/address.ts';

/** The columns that are read, by table. */
const columns: Readonly<Record<string, readonly string[]>> = {
  project: ['id', 'name', 'description', 'config'],
  job: ['id', 'name', 'project_id', 'paused', 'raw_definition'],
  trigger: ['id', 'name', 'job_id', 'earliest_trigger_datetime', 'latest_trigger_datetime', 'start_datetime', 'period'],
  task: ['id', 'name', 'job_id'],
  token: ['task_id', 'trigger_datetime', 'count', 'state'],
  task_run: ['id', 'task_id', 'trigger_datetime', 'attempt', 'priority'],
  retry: ['task_run_id', 'retry_at_datetime'],
  scheduler: ['last_seen_datetime'],
  global_stash: ['name', 'data'],
  project_stash: ['project_id', 'name', 'data'],
  job_stash: ['job_id', 'trigger_datetime', 'name', 'data'],
};

export type SourceProject = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly config: Record<string, unknown> | null;
};

export type SourceTrigger = {
  readonly name: string;
  readonly earliest: Date | null;
  readonly latest: Date | null;
};

export type SourceJob = {
  readonly id: string;
  readonly name: string;
  readonly project_id: string;
  readonly paused: boolean;
  /** The document as JSON; null: there is none. */
  readonly document: string | null;
  readonly triggers: readonly SourceTrigger[];
  /** The names of all tasks, including those that the document no longer names. */
  readonly tasks: readonly string[];
};

/** `count` may be negative, which is a fault of Waterwheel. */
export type SourceToken = {
  readonly task: string;
  readonly instant: Date;
  readonly count: number;
  readonly state: string;
};

export type SourceRetry = {
  readonly run: string;
  readonly job: string;
  readonly task: string;
  readonly instant: Date;
  /** The next one. */
  readonly attempt: number;
  readonly priority: string;
  readonly due: Date;
};

/** With the project or the job that it belongs to; both null: the global stash. */
export type SourceStash = {
  readonly project: string | null;
  readonly job: string | null;
  readonly instant: Date | null;
  /** The instant to the microsecond. */
  readonly at: string | null;
  readonly name: string;
  readonly bytes: number;
};

export interface Source {
  readonly db: Db;
  /** Seconds since a scheduler was last seen; null: there was none. */
  schedulerSeconds(): Promise<number | null>;
  projects(): Promise<SourceProject[]>;
  jobs(): Promise<SourceJob[]>;
  /** Tokens of a job that wait, or whose run has not ended well or badly. */
  tokens(job: string): Promise<SourceToken[]>;
  retries(): Promise<SourceRetry[]>;
  /** Names and sizes of all stash values. */
  stash(): Promise<SourceStash[]>;
  values(entries: readonly SourceStash[]): Promise<Buffer[]>;
  close(): Promise<void>;
}

/** Opens the database and checks that it is one of Waterwheel. */
export async function openSource(url: string): Promise<Source> {
  const address = addressOfUrl(url);
  const client = new Client(clientConfig(address, 'millrace import'));
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    const reason = error instanceof Error ? error.message || String(Reflect.get(error, 'code')) : String(error);
    throw new MillraceError('unreachable', `the database ${describe(address)} cannot be opened: ${reason}`, {
      cause: error,
    });
  }
  try {
    // an import waits for the server between two statements, for longer than some installations allow
    await client.query('set idle_in_transaction_session_timeout = 0');
    await client.query('begin isolation level repeatable read read only');
    const db = onClient(client);
    await rejectOtherSchema(db);
    return { ...makeReader(db), close: () => client.end().catch(() => {}) };
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

async function rejectOtherSchema(db: Db): Promise<void> {
  const rows = await db.rows<{ name: string }>(sql`
    select table_name || '.' || column_name as name
      from information_schema.columns
     where table_schema = any (current_schemas(false))`);
  const present = new Set(rows.map(({ name }) => name));
  const missing = Object.entries(columns).flatMap(([table, names]) =>
    names.map((name) => `${table}.${name}`).filter((name) => !present.has(name)),
  );
  if (missing.length === 0) return;
  const faults = missing.map((path) => ({ path, message: 'this column is missing, or this user may not read it' }));
  const advice =
    'give the database of a Waterwheel whose schema is that of its newest release, and a user that may read it';
  throw new MillraceError('bad_configuration', `this is not a database that can be imported; ${advice}`, { faults });
}

function makeReader(db: Db): Omit<Source, 'close'> {
  return {
    db,
    schedulerSeconds: async () => {
      const row = await db.one<{ seconds: number | null }>(sql`
        select extract(epoch from clock_timestamp() - max(last_seen_datetime))::float8 as seconds
          from scheduler`);
      return row.seconds;
    },
    projects: () =>
      db.rows<SourceProject>(sql`
        select id, name, coalesce(description, '') as description, config from project order by name`),
    jobs: () =>
      db
        .rows<SourceJob>(sql`
        select job.id, job.name, job.project_id, coalesce(job.paused, false) as paused, job.raw_definition as document,
               coalesce(triggers.list, '[]') as triggers, coalesce(tasks.list, '[]') as tasks
          from job
          left join lateral (
            select json_agg(json_build_object(
                     'name', trigger.name, 'earliest', trigger.earliest_trigger_datetime,
                     'latest', trigger.latest_trigger_datetime) order by trigger.name) as list
              from trigger
             where trigger.job_id = job.id) as triggers on true
          left join lateral (
            select json_agg(task.name order by task.name) as list
              from task
             where task.job_id = job.id) as tasks on true
         order by job.name`)
        .then((rows) => rows.map(readTimes)),
    tokens: (job) =>
      db.rows<SourceToken>(sql`
        select task.name as task, token.trigger_datetime as instant, coalesce(token.count, 0) as count,
               coalesce(token.state, 'waiting') as state
          from token
          join task on task.id = token.task_id
         where task.job_id = ${job}
           and (token.count <> 0 or token.state in ('active', 'running', 'cancelled'))
         order by 2, 1`),
    retries: () =>
      db.rows<SourceRetry>(sql`
        select distinct on (task_run.id)
               task_run.id as run, task.job_id as job, task.name as task, task_run.trigger_datetime as instant,
               task_run.attempt::integer + 1 as attempt, task_run.priority, retry.retry_at_datetime as due
          from retry
          join task_run on task_run.id = retry.task_run_id
          join task on task.id = task_run.task_id
         order by task_run.id, retry.retry_at_datetime`),
    stash: () =>
      db.rows<SourceStash>(sql`
        select null::uuid as project, null::uuid as job, null::timestamptz as instant, null::text as at, name,
               coalesce(octet_length(data), 0) as bytes
          from global_stash
        union all
        select project_id, null, null, null, name, coalesce(octet_length(data), 0) from project_stash
        union all
        select null, job_id, trigger_datetime, trigger_datetime::text, name, coalesce(octet_length(data), 0) from job_stash
        order by 1 nulls first, 2 nulls first, 3, 5`),
    values: (entries) => readValues(db, entries),
  };
}

function readTimes(row: SourceJob): SourceJob {
  const asDate = (at: Date | string | null): Date | null => (at === null ? null : new Date(at));
  const triggers = row.triggers.map(({ name, earliest, latest }) => ({
    name,
    earliest: asDate(earliest),
    latest: asDate(latest),
  }));
  return { ...row, triggers };
}

async function readValues(db: Db, entries: readonly SourceStash[]): Promise<Buffer[]> {
  const rows = await db.rows<{ data: Buffer | null }>(sql`
    select coalesce(job_stash.data, project_stash.data, global_stash.data) as data
      from unnest(
        ${entries.map((entry) => entry.project)}::uuid[],
        ${entries.map((entry) => entry.job)}::uuid[],
        ${entries.map((entry) => entry.at)}::timestamptz[],
        ${entries.map((entry) => entry.name)}::text[]
      ) with ordinality as entry (project, job, instant, name, n)
      left join job_stash on job_stash.job_id = entry.job and job_stash.trigger_datetime = entry.instant
                         and job_stash.name = entry.name
      left join project_stash on project_stash.project_id = entry.project and project_stash.name = entry.name
      left join global_stash on entry.job is null and entry.project is null and global_stash.name = entry.name
     order by entry.n`);
  return rows.map(({ data }) => data ?? Buffer.alloc(0));
}
