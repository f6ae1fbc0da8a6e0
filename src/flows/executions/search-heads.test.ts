import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planModes, scansOf, statementsOf } from '../../../test/harness/scans.ts';
import { makeTenantDatabase, type TenantDatabase } from '../../../test/harness/tenant-database.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import type { Status } from './heads.ts';
import { type HeadFilter, searchHeads } from './search-heads.ts';

const ended = 40_000;
const live = 60;
const walk = 1_000;
/** What a page may read of each table: the walk twice, and a join. */
const most = 4 * walk + 1_000;
const large = new Set(['execution', 'label', 'flow']);
const firstMs = Date.UTC(2026, 0, 1);
/** The flow whose executions are rare. */
const rare = newId();
const common = newId();

let database: TenantDatabase;
beforeAll(async () => {
  database = await makeTenantDatabase();
  const { db, pool } = database;
  for (const [id, name] of [
    [common, 'common'],
    [rare, 'rare'],
  ] as const)
    await db.exec(sql`
      insert into flow (id, name, version, created_at, updated_at) values (${id}, ${name}, 1, now(), now())`);
  // one each second; the ids have the times of creation
  await db.exec(sql`
    insert into execution (id, rev, status, calls, flow_id, version, key, parent, format, created_at, updated_at, ended_at)
    select (lpad(to_hex((extract(epoch from made.at) * 1000)::bigint), 12, '0') || '7000800000000000' || lpad(to_hex(n % 65536), 4, '0'))::uuid,
           3, case when n <= ${live} then n % 3 else 3 end, 0,
           case when n % 10000 = 0 then ${rare}::uuid else ${common}::uuid end, 1 + n % 2,
           case when n % 100 = 0 then 'key ' || n end, case when n % 1000 = 0 then ${rare}::uuid end, 1,
           made.at, made.at, case when n <= ${live} then null else made.at end
      from generate_series(1, ${ended}) as n,
           lateral (select ${new Date(firstMs)}::timestamptz + n * interval '1 second' as at) as made`);
  await db.exec(sql`
    insert into label (execution_id, name, value)
    select id, 'customer', case when version = 1 then 'a' else 'b' end from execution`);
  for (const table of large) await pool.query(`analyze ${table}`);
}, 600_000);
afterAll(() => database.close());

const find = (filter: Partial<HeadFilter>, walked = walk) =>
  searchHeads(database.db, { limit: 100, ...filter }, walked);

/** All pages of a search. */
async function findAll(filter: Partial<HeadFilter>) {
  const found: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined; ; pages++) {
    const page = await find({ ...filter, ...(cursor !== undefined && { cursor }) });
    found.push(...page.heads.map(({ id }) => id));
    if (page.next === null) return { found, pages: pages + 1 };
    cursor = page.next;
  }
}

describe('a search for executions', () => {
  it('finds all, newest first, over its pages', async () => {
    const { found } = await findAll({ limit: 1_000 });
    expect([found.length, found.toSorted().toReversed()]).toEqual([ended, found]);
  });

  it('finds those that have not ended on the first page, however old they are', async () => {
    const page = await find({ status: ['running', 'waiting', 'paused', 'incident'] });
    expect([page.heads.length, page.next]).toEqual([live, null]);
    expect(new Set(page.heads.map(({ status }) => status))).toEqual(new Set<Status>(['waiting', 'paused', 'incident']));
    const rest = await find({ status: ['incident'], flow: 'common', limit: 5 });
    expect([rest.heads.length, rest.next]).toEqual([5, rest.heads.at(-1)?.id]);
  });

  it('finds what is rare over several pages, which may be empty', async () => {
    expect(
      (await findAll({ status: ['incident', 'done'], version: 1, createdBefore: new Date(firstMs + 60_500) })).found,
    ).toHaveLength(10);
    const { found, pages } = await findAll({ status: ['cancelled'] });
    expect([found, pages]).toEqual([[], ended / walk + 1]);
  });

  it('walks along the flow, the label, the parent or the key', async () => {
    expect((await find({ flow: 'rare' })).heads).toHaveLength(ended / 10_000);
    expect((await find({ flow: 'nothing' })).heads).toEqual([]);
    expect((await find({ parent: rare })).heads).toHaveLength(ended / 1_000);
    expect((await find({ key: 'key 300' })).heads.map(({ key }) => key)).toEqual(['key 300']);
    expect((await find({ key: 'key 300', status: ['failed'] })).heads).toEqual([]);
    const page = await find({ label: { name: 'customer', value: 'b' }, flow: 'common', limit: 3 });
    expect(page.heads.map(({ labels }) => labels)).toEqual([{ customer: 'b' }, { customer: 'b' }, { customer: 'b' }]);
  });

  it('begins and ends at times', async () => {
    const at = (second: number): Date => new Date(firstMs + second * 1_000);
    const { found } = await findAll({ createdAfter: at(1_000), createdBefore: at(1_010) });
    expect(found).toHaveLength(10);
  });

  it.each<[string, Partial<HeadFilter>]>([
    ['everything', {}],
    ['a rare status', { status: ['cancelled'] }],
    ['what has not ended', { status: ['waiting', 'incident'], flow: 'common' }],
    ['a flow and a status', { flow: 'common', status: ['failed'] }],
    ['a label and a version', { label: { name: 'customer', value: 'a' }, version: 2 }],
    ['a parent', { parent: rare, status: ['failed'] }],
    ['a key', { key: 'key 300' }],
    ['a time', { createdAfter: new Date(firstMs + 30_000_000), createdBefore: new Date(firstMs + 31_000_000) }],
  ])('reads a bounded number of rows for %s', async (_, filter) => {
    const cursor = (await find({ limit: 1 })).heads[0]?.id;
    const statements = await statementsOf(database.db, (db) =>
      searchHeads(db, { limit: 100, cursor, ...filter }, walk),
    );
    for (const mode of planModes) {
      const scans = (await Promise.all(statements.map((each) => scansOf(database.pool, large, each, mode)))).flat();
      const read = scans.filter(({ table }) => table === 'execution' || table === 'label');
      expect(read.filter(({ type }) => type === 'Seq Scan')).toEqual([]);
      expect(
        read.reduce((sum, scan) => sum + scan.read, 0),
        `${mode} ${JSON.stringify(read)}`,
      ).toBeLessThan(most);
    }
  });
});
