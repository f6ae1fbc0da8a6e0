/**
 * The best that PostgreSQL can do for the rows of three-step executions: a batch writer without logic. It writes into tables made by
 * the product's own migrations, in a database beside the tenant's. All columns but the keys are copied from an execution of the
 * product: its head, its commits and its events. A short execution has no snapshot.
 *
 * As many connections as a conductor has lanes write at once. A batch is as large as the product's largest. Each commit of an
 * execution is one statement for the whole batch, and one commit of the database.
 */
import { Client } from 'pg';
import { engine } from '../../src/engine/engine.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, type Sql, sql } from '../../src/kernel/sql.ts';
import { type Address, clientConfig } from '../../src/postgres/address.ts';
import { migrateTenant } from '../../src/tenants/install.ts';
import { addEventPartitions, copyStatement } from '../copied-rows.ts';
import { atEnd } from '../ending.ts';
import type { Turn } from '../tally.ts';

export interface RawExecutions {
  /** Copies the rows of a finished execution of the tenant. */
  sample(tenant: Db, execution: string): Promise<void>;
  /** Writes for `ms` milliseconds. */
  write(ms: number): Promise<Turn>;
  close(): Promise<void>;
}

const lanes = 3;
const perBatch = 250;
const eventsAhead = 2_000_000;

export async function openRawExecutions(address: Address): Promise<RawExecutions> {
  await migrateTenant(address, engine);
  const setup = await connect(address);
  const clients = await Promise.all(Array.from({ length: lanes }, () => connect(address)));
  let statements: readonly string[] | undefined;
  return {
    async sample(tenant, execution) {
      statements = await makeStatements(setup, await copyRows(tenant, setup, execution));
    },
    async write(ms) {
      if (statements === undefined) throw new Error('call sample() before write()');
      const made = statements;
      await addEventPartitions(setup, eventsAhead);
      const startedMs = performance.now();
      const done = await Promise.all(clients.map((client) => writeUntil(client, made, startedMs + ms)));
      const runs = done.reduce((sum, n) => sum + n, 0);
      return { runs, perSecond: (runs / (performance.now() - startedMs)) * 1_000 };
    },
    close: atEnd(async () => void (await Promise.all([setup, ...clients].map((client) => client.end())))),
  };
}

async function connect(address: Address): Promise<Client> {
  const client = new Client(clientConfig(address, 'millrace bench raw'));
  await client.connect();
  await client.query(`set search_path to millrace; set timezone to 'UTC'`);
  return client;
}

/** Copies each row to a table of its own. Returns how many commits the execution has. */
async function copyRows(tenant: Db, raw: Client, execution: string): Promise<number> {
  const { revs } = await tenant.one<{ revs: number }>(sql`
    select rev as revs from execution where id = ${execution} and ended_at is not null`);
  const copy = (name: string, table: string, row: Sql): Promise<void> => copyRow({ tenant, raw, name, table, row });
  await copy('sample_execution', 'execution', sql`select * from execution where id = ${execution}`);
  for (let rev = 1; rev <= revs; rev++)
    await copy(
      `sample_commit_${rev}`,
      'commit',
      sql`
      select * from commit where execution_id = ${execution} and rev = ${rev}`,
    );
  for (const type of ['started', 'done'])
    await copy(
      `sample_${type}`,
      'event',
      sql`
      select * from event where subject = ${execution} and type = ${`execution.${type}`}`,
    );
  return revs;
}

interface Copied {
  readonly tenant: Db;
  readonly raw: Client;
  readonly name: string;
  readonly table: string;
  readonly row: Sql;
}

async function copyRow({ tenant, raw, name, table, row }: Copied): Promise<void> {
  const found = await tenant.one<{ row: string }>(sql`select to_json(s)::text as row from (${row}) s`);
  await raw.query(`drop table if exists ${name}; create table ${name} (like ${table})`);
  await raw.query(`insert into ${name} select * from json_populate_record(null::millrace.${table}, $1::json)`, [
    found.row,
  ]);
  await raw.query(`analyze ${name}`);
}

/** One statement for each commit of an execution; all take the ids of a batch. */
async function makeStatements(client: Client, revs: number): Promise<string[]> {
  const insert = (table: string, sample: string, given: Readonly<Record<string, string>>): Promise<string> =>
    copyStatement(client, { table, sample, given, from: 'unnest($1::uuid[]) u(id)' });
  const event = { seq: `nextval('event_seq')`, subject: 'u.id' };
  const begun = { id: 'u.id', rev: '1', status: '0', ended_at: 'null' };
  const statements: string[] = [];
  for (let rev = 1; rev <= revs; rev++) {
    const commit = await insert('commit', `sample_commit_${rev}`, { execution_id: 'u.id' });
    const isLast = rev === revs;
    const parts = [
      ...(rev === 1 ? [await insert('execution', 'sample_execution', begun)] : [moveHead(isLast)]),
      ...(rev === 1 ? [await insert('event', 'sample_started', event)] : []),
      ...(isLast ? [await insert('event', 'sample_done', event)] : []),
    ];
    const named = parts.map((part, i) => `p${i} as (${part})`);
    statements.push(`with ${named.join(', ')} ${commit}`);
  }
  return statements;
}

function moveHead(isLast: boolean): string {
  const end = isLast ? ', status = 3, ended_at = created_at' : '';
  return `update execution set rev = rev + 1, updated_at = created_at${end} where id = any ($1::uuid[])`;
}

async function writeUntil(client: Client, statements: readonly string[], untilMs: number): Promise<number> {
  let done = 0;
  for (; performance.now() < untilMs; done += perBatch) {
    const ids = `{${Array.from({ length: perBatch }, () => newId()).join(',')}}`;
    for (const [i, text] of statements.entries()) await client.query({ name: `rev ${i + 1}`, text, values: [ids] });
  }
  return done;
}
