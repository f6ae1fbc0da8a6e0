/** A database of Waterwheel on the suites' server, filled as its API and scheduler fill it (reference §2, §3). */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { type Db, onClient, sql } from '../../src/kernel/sql.ts';
import { clientConfig, onDatabase } from '../../src/postgres/address.ts';
import { administer, serverAddress } from './postgres-server.ts';

const schema = fileURLToPath(new URL('../fixtures/waterwheel.sql', import.meta.url));

interface WaterwheelTask {
  readonly name: string;
  readonly depends?: readonly string[];
  readonly [field: string]: unknown;
}

interface WaterwheelJob {
  readonly project: string;
  readonly name: string;
  readonly paused?: boolean;
  readonly triggers?: readonly { readonly name: string; readonly start: string; readonly [field: string]: unknown }[];
  readonly tasks?: readonly WaterwheelTask[];
  /** By trigger: the first and the latest instant that fired. */
  readonly fired?: Readonly<Record<string, readonly [earliest: string, latest: string]>>;
}

export interface WaterwheelDatabase {
  readonly url: string;
  readonly db: Db;
  /** Returns its id. */
  project(name: string, more?: { description?: string; config?: object }): Promise<string>;
  /** Returns its id. */
  job(job: WaterwheelJob): Promise<string>;
  /** Stores a document as it is. */
  document(project: string, name: string, text: string | null): Promise<string>;
  token(job: string, task: string, instant: string, token: { count?: number; state?: string }): Promise<void>;
  run(job: string, task: string, instant: string, run: { state: string; attempt?: number }): Promise<string>;
  /** A scheduler was seen this long ago. */
  schedulerSeen(secondsAgo: number): Promise<void>;
  pauseAll(): Promise<void>;
  close(): Promise<void>;
}

export async function makeWaterwheelDatabase(): Promise<WaterwheelDatabase> {
  const server = serverAddress();
  const address = onDatabase(server, `waterwheel_${randomBytes(6).toString('hex')}`);
  await administer(server, `create database ${address.database}`);
  const client = new Client(clientConfig(address, 'waterwheel'));
  client.on('error', () => {});
  await client.connect();
  await client.query(await readFile(schema, 'utf8'));
  const db = onClient(client);

  async function insertJob(project: string, name: string, text: string | null, paused = false): Promise<string> {
    const row = await db.one<{ id: string }>(sql`
      insert into job (id, name, project_id, description, paused, raw_definition)
      select ${randomUUID()}::uuid, ${name}, id, '', ${paused}, ${text} from project where project.name = ${project}
      returning id`);
    return row.id;
  }

  return {
    url: address.url,
    db,
    async project(name, { description = '', config } = {}) {
      const id = randomUUID();
      await db.exec(sql`
        insert into project (id, name, description, config)
        values (${id}, ${name}, ${description}, ${config === undefined ? null : JSON.stringify(config)}::jsonb)`);
      return id;
    },
    async job({ project, name, paused = false, triggers = [], tasks = [], fired = {} }) {
      const id = await insertJob(project, name, null, paused);
      const stored = storedDocument({ uuid: id, project, name, triggers, tasks });
      await db.exec(sql`update job set raw_definition = ${JSON.stringify(stored)} where id = ${id}`);
      for (const trigger of triggers) {
        const [earliest, latest] = fired[trigger.name] ?? [null, null];
        await db.exec(sql`
          insert into trigger (id, name, job_id, start_datetime, catchup, earliest_trigger_datetime, latest_trigger_datetime)
          values (${randomUUID()}, ${trigger.name}, ${id}, ${trigger.start}, ${trigger['catchup'] ?? 'earliest'},
                  ${earliest}::timestamptz, ${latest}::timestamptz)`);
      }
      for (const task of tasks) {
        const threshold = (task['threshold'] as number | undefined) ?? task.depends?.length ?? 1;
        await db.exec(sql`
          insert into task (id, name, job_id, threshold) values (${randomUUID()}, ${task.name}, ${id}, ${threshold})`);
      }
      return id;
    },
    document: (project, name, text) => insertJob(project, name, text),
    async token(job, task, instant, { count = 0, state = 'waiting' }) {
      await db.exec(sql`
        insert into token (task_id, trigger_datetime, count, state)
        select id, ${instant}::timestamptz, ${count}::integer, ${state}::text
          from task where job_id = ${job} and name = ${task}
        on conflict (task_id, trigger_datetime) do update set count = excluded.count, state = excluded.state`);
    },
    async run(job, task, instant, { state, attempt = 1 }) {
      const row = await db.one<{ id: string }>(sql`
        insert into task_run (id, task_id, trigger_datetime, queued_datetime, state, priority, attempt)
        select ${randomUUID()}::uuid, id, ${instant}::timestamptz, now(), ${state}::text, 'normal', ${attempt}::bigint
          from task where job_id = ${job} and name = ${task}
        returning id`);
      return row.id;
    },
    async schedulerSeen(secondsAgo) {
      await db.exec(sql`delete from scheduler`);
      await db.exec(sql`
        insert into scheduler (id, last_seen_datetime, queued_triggers, version)
        values (${randomUUID()}, now() - ${secondsAgo} * interval '1 second', 0, 'TODO')`);
    },
    async pauseAll() {
      await db.exec(sql`update job set paused = true`);
    },
    async close() {
      await client.end();
      await administer(server, `drop database if exists ${address.database} with (force)`);
    },
  };
}

const none = (names: readonly string[]): Record<string, null> => Object.fromEntries(names.map((name) => [name, null]));

/** Waterwheel stores a document as it has parsed it: every option that was left out is null. */
function storedDocument(job: {
  uuid: string;
  project: string;
  name: string;
  triggers: readonly object[];
  tasks: readonly WaterwheelTask[];
}): object {
  return {
    ...job,
    description: '',
    paused: null,
    triggers: job.triggers.map((trigger) => ({
      ...none(['end', 'period', 'cron', 'offset']),
      catchup: 'earliest',
      ...trigger,
    })),
    tasks: job.tasks.map((task) => ({
      ...none(['docker', 'depends', 'depends_failure', 'threshold', 'retry', 'timeout']),
      ...task,
    })),
  };
}

const hourMs = 3_600_000;

export interface Installation {
  readonly shop: string;
  readonly ops: string;
  readonly jobs: Readonly<
    Record<'nightly' | 'clocks' | 'join' | 'past' | 'asleep' | 'follower' | 'flaky' | 'ring a' | 'ring b', string>
  >;
  /** The full hour before now, and hours before it. */
  readonly hour: (back: number) => string;
  /** The run of `flaky` that failed and waits for its retry. */
  readonly retried: string;
}

/** An installation that has run for months: every kind of trigger, tokens that wait, a retry, stash, history, references between jobs. */
export async function fillInstallation(source: WaterwheelDatabase): Promise<Installation> {
  const nowMs = Math.floor(Date.now() / hourMs) * hourMs;
  const hour = (back: number): string => new Date(nowMs - back * hourMs).toISOString();
  const start = hour(24 * 90);
  const shop = await source.project('shop', {
    description: 'the web shop',
    config: { kubernetes_pod_merge: { a: 1 } },
  });
  const ops = await source.project('ops');
  const hourly = (name: string, more: object = {}) => ({ name, start, period: '1h', ...more });
  const nightly = await source.job({
    project: 'shop',
    name: 'nightly',
    triggers: [hourly('hourly')],
    tasks: [
      { name: 'export', depends: ['trigger/hourly'] },
      { name: 'load', depends: ['task/export'], docker: { image: 'loader:1', args: ['load'], env: ['LEVEL=info'] } },
    ],
    fired: { hourly: [start, hour(3)] },
  });
  const clocks = await source.job({
    project: 'shop',
    name: 'clocks',
    triggers: [
      { name: 'cron', start, cron: '0 0 * * * *', catchup: 'latest' },
      { name: 'shuffled', start, period: '1h', catchup: 'random' },
      { name: 'skips', start, period: '1h', catchup: 'none' },
      { name: 'later', start, period: '1h', offset: '30m' },
      { name: 'once', start, end: hour(24 * 90 - 1), period: '1h' },
      { name: 'new', start: hour(2), period: '1h' },
    ],
    tasks: ['cron', 'shuffled', 'skips', 'later', 'once', 'new'].map((name) => ({
      name,
      depends: [`trigger/${name}`],
    })),
    fired: {
      cron: [start, hour(4)],
      shuffled: [start, hour(4)],
      skips: [start, hour(4)],
      later: [start, hour(4)],
      once: [start, start],
    },
  });
  const join = await source.job({
    project: 'shop',
    name: 'join',
    triggers: [hourly('early'), hourly('late')],
    tasks: [{ name: 'both', depends: ['trigger/early', 'trigger/late'] }],
    // `early` is two instants ahead
    fired: { early: [start, hour(0)], late: [start, hour(2)] },
  });
  for (const back of [0, 1]) await source.token(join, 'both', hour(back), { count: 1 });
  const past = await source.job({
    project: 'ops',
    name: 'past',
    triggers: [{ name: 'daily', start, period: '1d', end: hour(24 * 85) }],
    tasks: [
      { name: 'work', depends: ['trigger/daily', 'task/end@1d'] },
      { name: 'end', depends: ['task/work'] },
    ],
    fired: { daily: [start, hour(24 * 86)] },
  });
  await source.token(past, 'work', hour(24 * 85), { count: 1 });
  const asleep = await source.job({
    project: 'ops',
    name: 'asleep',
    paused: true,
    triggers: [hourly('hourly')],
    tasks: [{ name: 'nap', depends: ['trigger/hourly'] }],
    fired: { hourly: [start, hour(100)] },
  });
  // its workers saw the pause
  await source.token(asleep, 'nap', hour(100), { state: 'cancelled' });
  const follower = await source.job({
    project: 'ops',
    name: 'a follower',
    tasks: [
      { name: 'first', depends: ['shop/nightly/task/export'] },
      { name: 'second', depends: ['task/first', 'past/task/end'] },
    ],
  });
  await source.token(follower, 'second', hour(24 * 86), { count: 1 });
  await source.token(follower, 'first', hour(50), { count: -1, state: 'success' });
  const flaky = await source.job({
    project: 'ops',
    name: 'flaky',
    tasks: [{ name: 'try', retry: { max_attempts: 5, delay: '1s' } }],
  });
  await source.token(flaky, 'try', hour(5), { state: 'retry' });
  const retried = await source.run(flaky, 'try', hour(5), { state: 'failure', attempt: 2 });
  await source.db.exec(sql`insert into retry (task_run_id, retry_at_datetime) values (${retried}, now())`);
  const ringA = await source.job({
    project: 'ops',
    name: 'ring a',
    tasks: [{ name: 'there', depends: ['ring b/task/back@1h'] }],
  });
  const ringB = await source.job({
    project: 'ops',
    name: 'ring b',
    tasks: [{ name: 'back', depends: ['ring a/task/there'] }],
  });
  // a trigger that a later document no longer named
  await source.db.exec(sql`
    insert into trigger (id, name, job_id, start_datetime, catchup)
    values (${randomUUID()}, 'forgotten', ${nightly}, ${start}::timestamptz, 'earliest')`);
  await source.db.exec(sql`
    insert into token (task_id, trigger_datetime, count, state)
    select task.id, ${start}::timestamptz + n * interval '1 hour', 0, 'success'
      from task, generate_series(0, 999) as n
     where task.job_id = ${nightly}`);
  await source.db.exec(sql`
    insert into task_run (id, task_id, trigger_datetime, queued_datetime, finish_datetime, state, priority, attempt)
    select gen_random_uuid(), task_id, trigger_datetime, trigger_datetime, trigger_datetime, state, 'normal', 1
      from token where state = 'success'`);
  await source.db.exec(sql`
    insert into global_stash (name, data) values ('license', 'open sesame'), ('empty', '')`);
  await source.db.exec(sql`
    insert into project_stash (project_id, name, data) values (${shop}, 'db-password', 'hunter2'), (${ops}, 'pem', '\\x00ff')`);
  await source.db.exec(sql`
    insert into job_stash (job_id, trigger_datetime, name, data)
    select ${nightly}::uuid, ${hour(3)}::timestamptz + n * interval '1 microsecond', 'rows ' || n, convert_to(n::text, 'UTF8')
      from generate_series(0, 99) as n`);
  const jobs = { nightly, clocks, join, past, asleep, follower, flaky, 'ring a': ringA, 'ring b': ringB };
  return { shop, ops, jobs, hour, retried };
}
