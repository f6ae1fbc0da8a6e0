/** A tenant that cannot be written does not prevent others from being written; unwritten decisions are not carried out. */
import type { Pool } from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../test/harness/fresh-database.ts';
import { newId } from '../kernel/id.ts';
import { type Db, onPool, sql } from '../kernel/sql.ts';
import { openPool } from '../postgres/pool/pool.ts';
import { readEntries, readHosts, readSlots } from './launch-queries.ts';
import { type Whose, writePlan, type Written } from './plan-writes.ts';
import { decide } from './turn.ts';

let control: ControlDatabase;
let pool: Pool;
/** With a short lock timeout. */
let db: Db;
/** The same time for all turns of a test, so that pauses do not end meanwhile. */
let now: Date | undefined;
const poolWith = (lockTimeout: string): Pool =>
  openPool({
    address: control.address,
    schema: 'control',
    application: 'a test',
    max: 2,
    allowPooler: false,
    onOpen: async (client) => void (await client.query(`set lock_timeout to '${lockTimeout}'`)),
    onError: () => {},
  });
beforeEach(async () => {
  control = await makeControlDatabase();
  pool = poolWith('50ms');
  db = onPool(pool);
  now = undefined;
});
afterEach(async () => {
  await pool.end();
  await control.close();
});

/** A host that is known to have ended. */
async function lostHost(): Promise<string> {
  const id = newId();
  await db.exec(sql`
    insert into host (id, machine, pid, engine, started_at, beat_at) values (${id}, 'here', 1, '1', now(), '-infinity')`);
  return id;
}

async function runningOn(hostId: string): Promise<string> {
  const id = newId();
  await db.exec(sql`insert into tenant (id, name, database, created_at) values (${id}, ${id}, ${id}, now())`);
  await db.exec(sql`
    insert into launch (tenant_id, state, host_id, engine, order_no, ordered, changed_at)
    values (${id}, 'STARTED', ${hostId}, '1', 1, true, now())`);
  return id;
}

async function turn(
  without: ReadonlySet<Whose> = new Set(),
  again: readonly Whose[] = [],
  on: Db = db,
): Promise<Written> {
  now ??= new Date();
  const plan = decide({
    now,
    launcherId: newId(),
    limit: 9,
    entries: await readEntries(db),
    hosts: await readHosts(db),
    slots: await readSlots(db),
    messages: [],
    sightings: [],
    presenceOf: () => 'there',
    findings: new Map(),
    mayJudge: true,
    known: new Map(),
    isNew: false,
    isRecovering: false,
    mostHosts: 9,
    keepsSpares: false,
    hostFaults: new Map(),
  });
  return writePlan(on, { plan, epoch: 0, at: now, dismissed: [], without, again });
}

/** Does the work while another session has locked these rows. */
async function holding<T>(
  table: 'launch' | 'host',
  column: string,
  ids: string | readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  const locker = await control.pool.connect();
  try {
    // without a timeout: the rows stay locked until the rollback
    await locker.query(`begin; set local idle_in_transaction_session_timeout to 0`);
    await locker.query(`select from control.${table} where ${column} = any($1) for update`, [[ids].flat()]);
    return await work();
  } finally {
    await locker.query('rollback');
    locker.release();
  }
}

const states = async (): Promise<Record<string, string>> => {
  const rows = await db.rows<{ tenant_id: string; state: string }>(sql`select tenant_id, state from launch`);
  return Object.fromEntries(rows.map(({ tenant_id, state }) => [tenant_id, state]));
};
const hosts = () => db.rows(sql`select id from host`);
const changed = ({ plan }: Written): string[] => plan.changes.map(({ entry }) => entry.tenant.id);

it('a lost host is deleted although the row of one of its tenants is locked; that tenant is written later', async () => {
  const host = await lostHost();
  const [locked, other] = [await runningOn(host), await runningOn(host)];
  const written = await holding('launch', 'tenant_id', locked, () => turn());
  expect([...written.refused.keys()]).toEqual([locked]);
  expect(await states()).toEqual({ [locked]: 'STARTED', [other]: 'ALLOCATED' });
  expect(await hosts()).toEqual([]);
  expect([written.plan.lost.map(({ id }) => id), changed(written)]).toEqual([[host], [other]]);
  expect((await turn(new Set([locked]))).plan.changes).toEqual([]);
  await turn(new Set([locked]), [locked]);
  expect(await states()).toMatchObject({ [locked]: 'ALLOCATED' });
});

it('a lost host whose row is locked does not hold up its tenants, and is deleted later', async () => {
  const host = await lostHost();
  const tenant = await runningOn(host);
  const written = await holding('host', 'id', host, () => turn());
  expect([...written.refused.keys()]).toEqual([null]);
  expect(await states()).toEqual({ [tenant]: 'DISABLED' });
  expect([written.plan.lost, changed(written)]).toEqual([[], [tenant]]);
  expect((await turn(new Set([null]), [null])).plan.lost).toHaveLength(1);
  expect(await hosts()).toEqual([]);
});

it('many locked tenants are found without waiting for each of them', async () => {
  const host = await lostHost();
  const locked = await Promise.all(Array.from({ length: 8 }, () => runningOn(host)));
  const other = await runningOn(host);
  // waiting for each of them would take half a minute
  const patient = poolWith('2s');
  const startedMs = performance.now();
  const written = await holding('launch', 'tenant_id', locked, () => turn(new Set(), [], onPool(patient)));
  expect(new Set(written.refused.keys())).toEqual(new Set(locked));
  expect(performance.now() - startedMs).toBeLessThan(20_000);
  expect(await states()).toMatchObject({ [other]: 'ENABLED' });
  await patient.end();
});
