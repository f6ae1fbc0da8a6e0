/** How the launcher grants slots, and how few statements it needs for many tenants. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeStage, type Stage, type StagedTenant } from '../../test/harness/launching.ts';
import type { PlayedHost } from '../../test/harness/played-host.ts';
import { until } from '../../test/harness/until.ts';
import { sql } from '../kernel/sql.ts';

let stage: Stage;
let host: PlayedHost;
beforeEach(async () => {
  stage = await makeStage();
  host = await stage.host();
});
afterEach(() => stage.close());

const db = () => stage.control.db;
const held = () =>
  db().rows<{ kind: string; tenant: string | null }>(sql`
    select kind, tenant.name as tenant from slot left join tenant on tenant.id = tenant_id
     where granted_at is not null order by granted_at, tenant.name`);

async function tenants(...names: string[]): Promise<StagedTenant[]> {
  const made: StagedTenant[] = [];
  for (const name of names) made.push(await stage.tenant(name));
  return made;
}

describe('slots', () => {
  it('slots are granted in the order of requests; waiting tenants show their position, and get freed slots', async () => {
    await stage.limit(3);
    const [a, b, c, d] = await tenants('a', 'b', 'c', 'd');
    if (!a || !b || !c || !d) throw new Error('four were made');
    await stage.launch();
    for (const tenant of [a, b]) await stage.becomes(tenant, 'STARTED');
    expect(await stage.becomes(c, 'ENABLED', 'no_slot')).toMatchObject({ reason: 'no slot (position 1)' });
    expect(await stage.becomes(d, 'ENABLED', 'no_slot')).toMatchObject({ reason: 'no slot (position 2)' });
    expect((await held()).map(({ kind, tenant }) => tenant ?? kind)).toEqual(['a', 'b', 'launcher']);
    const id = await stage.send(d, 'start');
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'no_slot', detail: 'no slot (position 2)' });
    await stage.send(a, 'stop');
    await stage.becomes(c, 'STARTED');
    expect(await stage.becomes(d, 'ENABLED', 'no_slot')).toMatchObject({ reason: 'no slot (position 1)' });
    await stage.limit(4);
    await stage.becomes(d, 'STARTED');
  });

  it('a tenant keeps its slot during a restart', async () => {
    await stage.limit(2);
    const [a, b] = await tenants('a', 'b');
    if (!a || !b) throw new Error('two were made');
    await stage.launch();
    await stage.becomes(a, 'STARTED');
    await stage.becomes(b, 'ENABLED', 'no_slot');
    host.letsGo = false;
    const id = await stage.send(a, 'restart');
    await stage.becomes(a, 'ALLOCATED', 'stopping');
    host.letsGo = true;
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'started' });
    expect(await stage.view(a)).toMatchObject({ order_no: 2 });
    expect(await stage.view(b)).toMatchObject({ state: 'ENABLED', code: 'no_slot', order_no: 0 });
  });

  it('a tenant whose scheduler crashes for the first time keeps its slot, although another waits', async () => {
    await stage.limit(2);
    const [a, b] = await tenants('a', 'b');
    if (!a || !b) throw new Error('two were made');
    await stage.launch();
    await stage.becomes(a, 'STARTED');
    await stage.becomes(b, 'ENABLED', 'no_slot');
    await host.end(a.id, { code: 'crashed', reason: 'it failed' });
    await until('it runs again', async () => {
      const view = await stage.view(a);
      return (view?.state === 'STARTED' && view.order_no === 2) || undefined;
    });
    expect(await stage.view(b)).toMatchObject({ state: 'ENABLED', code: 'no_slot', order_no: 0 });
  });

  it('a lowered limit takes slots from the newest schedulers, which wait in line again', async () => {
    const [a, b, c] = await tenants('a', 'b', 'c');
    if (!a || !b || !c) throw new Error('three were made');
    await stage.launch();
    for (const tenant of [a, b, c]) await stage.becomes(tenant, 'STARTED');
    await stage.limit(2);
    await until('one is left', async () => {
      const states = await Promise.all([a, b, c].map((tenant) => stage.view(tenant)));
      const lines = states.filter((view) => view?.code === 'no_slot');
      return (lines.length === 2 && states.filter((view) => view?.state === 'STARTED').length === 1) || undefined;
    });
    await until('its host has let go', () => host.running.size === 1 || undefined);
    await stage.limit(0);
    for (const tenant of [a, b, c]) await stage.becomes(tenant, 'ENABLED', 'no_slot');
    expect((await held()).map(({ kind }) => kind)).toEqual(['launcher']);
    const id = await stage.send(a, 'stop');
    expect(await stage.outcome(id), 'it still acts').toMatchObject({ outcome: 'stopped' });
    await stage.limit(64);
    for (const tenant of [b, c]) await stage.becomes(tenant, 'STARTED');
  });
});

describe('many tenants', () => {
  it('a hundred tenants start in a few turns', { timeout: 120_000 }, async () => {
    await stage.limit(200);
    const made = await tenants(...Array.from({ length: 100 }, (_, i) => `t${i}`));
    const transactions = async (): Promise<number> => {
      const row = await db().one<{ n: number }>(sql`
        select xact_commit as n from pg_stat_database where datname = current_database()`);
      return row.n;
    };
    const startedAt = performance.now();
    const before = await transactions();
    await stage.launch();
    await until(
      'all are started',
      async () => {
        const row = await db().one<{ n: number }>(sql`select count(*) as n from launch where state = 'STARTED'`);
        return row.n === made.length || undefined;
      },
      60_000,
    );
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    // the played host alone needs one transaction for each tenant
    expect((await transactions()) - before).toBeLessThan(1_000);
    expect(await db().rows(sql`select distinct order_no from launch`)).toEqual([{ order_no: 1 }]);
  });
});
