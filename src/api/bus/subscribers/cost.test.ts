/** What the limit by bytes has dropped for a subscriber is found among any number of other dead letters. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { planModes, scansOf } from '../../../../test/harness/scans.ts';
import { makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';
import { newId } from '../../../kernel/id.ts';
import { sql } from '../../../kernel/sql.ts';
import { droppedOf } from './queries.ts';

const letters = 20_000;
const gaps = 3;
const subscriber = newId();
let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
  await api.db.exec(sql`
    insert into subscriber (id, name, identity, kind, created_at)
    values (${subscriber}, 'tests--00000000', ${newId()}, 'pull', ${new Date()})`);
  await api.db.exec(sql`
    insert into dead_letter (id, subscriber_id, batch, first_seq, last_seq, events, code, attempts, at)
    select gen_random_uuid(), ${subscriber}, n::text, n, n, 1, case when n <= ${gaps} then 'dropped' else 'refused' end, 1,
           ${new Date()}
      from generate_series(1, ${letters}) as n`);
  await api.pool.query('analyze dead_letter');
}, 120_000);
afterAll(() => api.close());

it.each(planModes)('drops are read by an index of their own (%s)', async (mode) => {
  const statement = sql`select ${droppedOf(sql`${subscriber}`)} as dropped`;
  expect(await api.db.one(statement)).toMatchObject({ dropped: { events: gaps, first: '1', last: String(gaps) } });
  const scans = await scansOf(api.pool, new Set(['dead_letter']), statement, mode);
  expect(scans.reduce((sum, { read }) => sum + read, 0)).toBe(gaps);
});
