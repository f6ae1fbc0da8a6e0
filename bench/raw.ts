/**
 * The best that PostgreSQL can do for the same rows: a batch writer without logic. It writes into tables made by the
 * product's own migrations, in a database beside the tenant's. Per run and table it writes as many rows as the product
 * did, of the same width: all columns but the keys are copied from a row of the product.
 *
 * Two connections write at once. A batch is 1,000 runs in three statements, hence three commits: `made` (firing, trigger
 * marks, tokens, live, `run.created`), `claimed` (live), `finished` (live → run, tokens downstream, `run.finished`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { migrateTenant } from '../src/tenants/install.ts';
import { engine } from '../src/engine/engine.ts';
import { newId } from '../src/kernel/id.ts';
import { type Db, type Sql, sql } from '../src/kernel/sql.ts';
import { type Address, clientConfig } from '../src/postgres/address.ts';
import { addEventPartitions, copyStatement } from './copied-rows.ts';
import { atEnd } from './ending.ts';

/** Rows that the product writes per 1,000 runs, besides one token, live and run row and two events per run. */
export interface RowsPerThousand {
  readonly firings: number;
  readonly triggerUpdates: number;
  readonly tokenUpdates: number;
}

export interface RawWriter {
  /** Copies sample rows and keys from the tenant. Call it while the tenant has live runs. */
  sample(tenant: Db): Promise<void>;
  /** Writes for `ms` milliseconds. */
  write(ms: number, rows: RowsPerThousand): Promise<{ readonly runs: number; readonly perSecond: number }>;
  close(): Promise<void>;
}

const writers = 2;
const runsPerBatch = 1_000;
/** Event partitions are added for this many events ahead, which is more than one turn can write. */
const eventsAhead = 4_000_000;

export async function openRaw(address: Address): Promise<RawWriter> {
  await makeTables(address);
  const setup = await connect(address);
  const clients = await Promise.all(Array.from({ length: writers }, () => connect(address)));
  let keys: Keys | undefined;
  let statements: Statements | undefined;
  return {
    async sample(tenant) {
      for (const sample of samples) await copySample(tenant, setup, sample);
      keys = { triggers: await copyTriggers(tenant, setup), tasks: await tasksOf(tenant) };
      statements = await makeStatements(setup);
    },
    async write(ms, rows) {
      if (keys === undefined || statements === undefined) throw new Error('call sample() before write()');
      await addEventPartitions(setup, eventsAhead);
      const [given, made] = [keys, statements];
      const startedAt = performance.now();
      const done = await Promise.all(
        clients.map((client, writer) => writeUntil(client, made, given, { rows, writer, until: startedAt + ms })),
      );
      const runs = done.reduce((sum, n) => sum + n, 0);
      return { runs, perSecond: (runs / (performance.now() - startedAt)) * 1_000 };
    },
    close: atEnd(async () => void (await Promise.all([setup, ...clients].map((client) => client.end())))),
  };
}

async function makeTables(address: Address): Promise<void> {
  await migrateTenant(address, engine);
}

async function connect(address: Address): Promise<Client> {
  const client = new Client(clientConfig(address, 'millrace bench raw'));
  await client.connect();
  await client.query(`set search_path to millrace; set timezone to 'UTC'`);
  return client;
}

/** One row of each table, stored in a table of its own. */
const samples = [
  { name: 'sample_firing', table: 'firing', row: sql`select * from firing limit 1` },
  { name: 'sample_token', table: 'token', row: sql`select * from token limit 1` },
  { name: 'sample_live', table: 'live', row: sql`select * from live where worker_id is null limit 1` },
  { name: 'sample_run', table: 'run', row: sql`select * from run limit 1` },
  { name: 'sample_created', table: 'event', row: sql`select * from event where type = 'run.created' limit 1` },
  { name: 'sample_finished', table: 'event', row: sql`select * from event where type = 'run.finished' limit 1` },
] as const;

async function copySample(tenant: Db, raw: Client, { name, table, row }: (typeof samples)[number]): Promise<void> {
  const find = (): Promise<{ row: string } | undefined> =>
    tenant.maybeOne(sql`select to_json(s)::text as row from (${row}) s`);
  let found = await find();
  for (; found === undefined; found = await find()) await sleep(1);
  await raw.query(`drop table if exists ${name}; create table ${name} (like ${table})`);
  await raw.query(`insert into ${name} select * from json_populate_record(null::millrace.${table}, $1::json)`, [
    found.row,
  ]);
  await raw.query(`analyze ${name}`);
}

/**
 * Copies triggers with the rows they refer to, so that their marks can be moved. Each writer gets copies of its own, as
 * many as the product has: two writers that move the same trigger would wait for each other. Returns the ids by writer.
 */
async function copyTriggers(tenant: Db, raw: Client): Promise<string[][]> {
  await insertRows(raw, 'project', await rowsOf(tenant, sql`project`));
  await insertRows(raw, 'job', await rowsOf(tenant, sql`job`));
  const triggers = await rowsOf(tenant, sql`trigger`);
  const byWriter = Array.from({ length: writers }, (_, writer) =>
    triggers.map((row) => ({ ...row, id: newId(), name: `${row.name} ${writer}` })),
  );
  await insertRows(raw, 'trigger', byWriter.flat());
  return byWriter.map((rows) => rows.map(({ id }) => id));
}

interface NamedRow {
  readonly id: string;
  readonly name: string;
}

async function rowsOf(tenant: Db, table: Sql): Promise<NamedRow[]> {
  return (await tenant.one<{ rows: NamedRow[] }>(sql`select json_agg(t) as rows from ${table} t`)).rows;
}

async function insertRows(raw: Client, table: string, rows: readonly NamedRow[]): Promise<void> {
  await raw.query(`insert into ${table} select * from json_populate_recordset(null::millrace.${table}, $1::json)`, [
    JSON.stringify(rows),
  ]);
}

interface Keys {
  /** By writer. */
  readonly triggers: readonly (readonly string[])[];
  readonly tasks: readonly string[];
}

async function tasksOf(tenant: Db): Promise<string[]> {
  return (await tenant.one<{ ids: string[] }>(sql`select array_agg(id order by id)::text[] as ids from task`)).ids;
}

interface Statements {
  readonly made: string;
  readonly claimed: string;
  readonly finished: string;
}

async function makeStatements(raw: Client): Promise<Statements> {
  const insert = (table: string, sample: string, given: Readonly<Record<string, string>>, from: string) =>
    copyStatement(raw, { table, sample, given, from });
  const pair = (key: string) => ({ [key]: `u.${key}`, instant: 'u.instant' });
  const run = { id: 'u.id', task_id: 'u.task_id', instant: 'u.instant' };
  const event = { seq: `nextval('event_seq')`, subject: 'u.id' };
  const made = `
    with f as (${await insert('firing', 'sample_firing', pair('trigger_id'), `unnest($1::uuid[], $2::timestamptz[]) u(trigger_id, instant)`)}),
    m as (update trigger set latest = $3::timestamptz where id = any ($4::uuid[])),
    k as (${await insert('token', 'sample_token', pair('task_id'), 'unnest($6::uuid[], $7::timestamptz[]) u(task_id, instant)')}),
    e as (${await insert('event', 'sample_created', event, 'unnest($5::uuid[]) u(id)')})
    ${await insert('live', 'sample_live', run, 'unnest($5::uuid[], $6::uuid[], $7::timestamptz[]) u(id, task_id, instant)')}`;
  const claimed = `
    update live set worker_id = id, incarnation = 1, lease = 1, claimed_at = $2::timestamptz where id = any ($1::uuid[])`;
  const finished = `
    with u as (delete from live where id = any ($1::uuid[]) returning id, task_id, instant),
    k as (
      update token set count = count + 1
        from unnest($2::uuid[], $3::timestamptz[]) n(task_id, instant)
       where token.task_id = n.task_id and token.instant = n.instant),
    e as (${await insert('event', 'sample_finished', event, 'unnest($1::uuid[]) u(id)')})
    ${await insert('run', 'sample_run', run, 'u')}`;
  return { made, claimed, finished };
}

interface Wanted {
  readonly rows: RowsPerThousand;
  /** Index of the writer. */
  readonly writer: number;
  readonly until: number;
}

/** Number of batches over all writers and calls, so that no key is used twice. */
let batches = 0;

async function writeUntil(client: Client, statements: Statements, keys: Keys, wanted: Wanted): Promise<number> {
  let done = 0;
  while (performance.now() < wanted.until) {
    await writeBatch(client, statements, valuesOf(keys, wanted, batches++));
    done += runsPerBatch;
  }
  return done;
}

async function writeBatch(client: Client, { made, claimed, finished }: Statements, v: Values): Promise<void> {
  const { firings, firingInstants, now, moved, runs, tasks, instants, updated, updatedInstants } = v;
  const values = [firings, firingInstants, now, moved, runs, tasks, instants];
  await client.query({ name: 'made', text: made, values });
  await client.query({ name: 'claimed', text: claimed, values: [runs, now] });
  await client.query({ name: 'finished', text: finished, values: [runs, updated, updatedInstants] });
}

/** Arrays as literals of PostgreSQL: converting arrays of elements is the slowest part of the driver. */
type Values = Readonly<
  Record<
    'firings' | 'firingInstants' | 'moved' | 'runs' | 'tasks' | 'instants' | 'updated' | 'updatedInstants' | 'now',
    string
  >
>;

function valuesOf(keys: Keys, { rows, writer }: Wanted, number: number): Values {
  const ids = Array.from({ length: runsPerBatch }, () => newId());
  const tokens = pairs(keys.tasks, number * runsPerBatch, runsPerBatch);
  const triggers = keys.triggers[writer] ?? [];
  const firings = pairs(triggers, number * rows.firings, rows.firings);
  return {
    firings: literal(firings.map(({ key }) => key)),
    firingInstants: literal(firings.map(({ instant }) => instant)),
    moved: literal(triggers.slice(0, rows.triggerUpdates)),
    runs: literal(ids),
    tasks: literal(tokens.map(({ key }) => key)),
    instants: literal(tokens.map(({ instant }) => instant)),
    updated: literal(tokens.slice(0, rows.tokenUpdates).map(({ key }) => key)),
    updatedInstants: literal(tokens.slice(0, rows.tokenUpdates).map(({ instant }) => instant)),
    now: new Date().toISOString(),
  };
}

const firstInstant = Date.UTC(2000, 0, 1);

/** Pairs keys with instants; all keys have an instant before any has the next. */
function pairs(keys: readonly string[], from: number, count: number): { key: string; instant: string }[] {
  let round = -1;
  let instant = '';
  return Array.from({ length: count }, (_, i) => {
    const at = from + i;
    if (Math.floor(at / keys.length) !== round) {
      round = Math.floor(at / keys.length);
      instant = new Date(firstInstant + round * 60_000).toISOString();
    }
    return { key: keys[at % keys.length] ?? '', instant };
  });
}

function literal(elements: readonly string[]): string {
  return `{${elements.join(',')}}`;
}
