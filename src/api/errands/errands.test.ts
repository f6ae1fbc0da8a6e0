import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { holdErrands } from '../../../test/harness/errands.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
beforeEach(async () => {
  await api.db.exec(sql`delete from errand`);
  await api.db.exec(sql`delete from errand_hold`);
});
afterAll(() => api.close());

/** `p`: pending, with all that are ready. */
const add = async (queue: string, key: string, state: 's' | 'r' | 'p' | 'x') => {
  await api.db.exec(sql`
    insert into errand (queue, key, state, run_at, losses, reason)
    values (${queue}, ${key}, ${state === 'p' ? 'r' : state}::"char",
      case when ${state} = 's' then timestamptz '2030-01-01' end, case when ${state} = 'x' then 5 else 0 end,
      case when ${state} = 'x' then 'lost five times' end)`);
  if (state === 'p') await holdErrands(api.db, newId());
};

describe('errands', () => {
  it('errands are listed in pages by queue and key, with the counts of both queues', async () => {
    await add('aux', '["relay",[]]', 'p');
    await add('main', '["deliver",["b"]]', 'r');
    await add('main', '["deliver",["a"]]', 's');
    const first = await api.call('GET /api/errands', { query: { limit: 2 } });
    expect(first.items.map(({ queue, key, state }) => [queue, key, state])).toEqual([
      ['aux', '["relay",[]]', 'pending'],
      ['main', '["deliver",["a"]]', 'scheduled'],
    ]);
    expect(first.items.map(({ work, subscriber }) => [work, subscriber])).toEqual([
      ['relay', null],
      [null, null],
    ]);
    expect(first.counts).toEqual({
      main: { scheduled: 1, ready: 1, pending: 0, poisoned: 0 },
      aux: { scheduled: 0, ready: 0, pending: 1, poisoned: 0 },
    });
    const rest = await api.call('GET /api/errands', { query: { limit: 2, cursor: first.next ?? '' } });
    expect(rest.items.map(({ key }) => key)).toEqual(['["deliver",["b"]]']);
    expect(rest.next).toBeNull();
  });

  it('the list is narrowed to a queue and a state', async () => {
    await add('main', 'm', 'x');
    await add('main', 'n', 'r');
    await add('aux', 'a', 'x');
    const { items } = await api.call('GET /api/errands', { query: { queue: 'main', state: 'poisoned' } });
    expect(items).toMatchObject([{ key: 'm', losses: 5, reason: 'lost five times' }]);
    const keysOf = async (state: 'ready' | 'pending') =>
      (await api.call('GET /api/errands', { query: { state } })).items.map(({ key }) => key);
    await add('main', 'p', 'p');
    await add('main', 'later', 'r');
    expect([await keysOf('pending'), await keysOf('ready')]).toEqual([['n', 'p'], ['later']]);
  });

  it('a retry makes scheduled and poisoned errands ready, leaves others alone, wakes couriers and is in the audit', async () => {
    for (const state of ['p', 's', 'x', 'r'] as const) await add('main', state, state);
    await add('aux', 's', 's');
    api.heard.splice(0);
    const body = { queue: 'main' as const, keys: ['s', 'x', 'r', 'p', 'missing', 's'] };
    expect(await api.call('POST /api/errands/retry', { body })).toEqual({ promoted: 1, revived: 1 });
    expect(api.heard).toContain('bus');
    const states = await api.db.rows(
      sql`select queue, key, state::text as state, losses from errand order by queue, key`,
    );
    expect(states).toEqual([
      { queue: 'aux', key: 's', state: 's', losses: 0 },
      { queue: 'main', key: 'p', state: 'r', losses: 0 },
      { queue: 'main', key: 'r', state: 'r', losses: 0 },
      { queue: 'main', key: 's', state: 'r', losses: 0 },
      { queue: 'main', key: 'x', state: 'r', losses: 0 },
    ]);
    const { items } = await api.call('GET /api/audit', { query: { topic: 'millrace_bus' } });
    expect(items[0]).toMatchObject({ type: 'errands.retried', body: { queue: 'main', promoted: 1, revived: 1 } });
    expect(await api.call('POST /api/errands/retry', { body })).toEqual({ promoted: 0, revived: 0 });
    expect((await api.call('GET /api/audit', { query: { topic: 'millrace_bus' } })).items).toHaveLength(1);
  });

  it('a viewer reads errands and cannot retry them', async () => {
    const viewer = api.as(keyOf('viewer'));
    expect((await viewer('GET /api/errands')).items).toEqual([]);
    await expect(viewer('POST /api/errands/retry', { body: { queue: 'main', keys: ['k'] } })).rejects.toMatchObject({
      status: 403,
    });
  });
});
