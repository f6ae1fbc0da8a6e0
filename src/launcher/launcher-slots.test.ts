/** How the launcher grants slots, and how few statements it needs for many tenants. */
import { describe, expect } from 'vitest';
import { type Stage, stageTest as it } from '../../test/harness/launching.ts';
import { until } from '../../test/harness/until.ts';
import { sql } from '../kernel/sql.ts';

const held = ({ control }: Stage) =>
  control.db.rows<{ kind: string; tenant: string | null }>(sql`
    select kind, tenant.name as tenant from slot left join tenant on tenant.id = tenant_id
     where granted_at is not null order by granted_at, tenant.name`);

describe.concurrent('slots', () => {
  it('slots are granted in the order of requests; waiting tenants show their position, and get freed slots', async ({
    stage,
  }) => {
    await stage.host();
    await stage.limit(3);
    const [a, b, c, d] = [
      await stage.tenant('a'),
      await stage.tenant('b'),
      await stage.tenant('c'),
      await stage.tenant('d'),
    ];
    await stage.launch();
    for (const tenant of [a, b]) await stage.becomes(tenant, 'STARTED');
    expect(await stage.becomes(c, 'ENABLED', 'no_slot')).toMatchObject({ reason: 'no slot (position 1)' });
    expect(await stage.becomes(d, 'ENABLED', 'no_slot')).toMatchObject({ reason: 'no slot (position 2)' });
    expect((await held(stage)).map(({ kind, tenant }) => tenant ?? kind)).toEqual(['a', 'b', 'launcher']);
    const id = await stage.send(d, 'start');
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'no_slot', detail: 'no slot (position 2)' });
    await stage.send(a, 'stop');
    await stage.becomes(c, 'STARTED');
    expect(await stage.becomes(d, 'ENABLED', 'no_slot')).toMatchObject({ reason: 'no slot (position 1)' });
    await stage.limit(4);
    await stage.becomes(d, 'STARTED');
  });

  it('a tenant keeps its slot during a restart', async ({ stage }) => {
    const host = await stage.host();
    await stage.limit(2);
    const [a, b] = [await stage.tenant('a'), await stage.tenant('b')];
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

  it('a tenant whose scheduler crashes for the first time keeps its slot, although another waits', async ({
    stage,
  }) => {
    const host = await stage.host();
    await stage.limit(2);
    const [a, b] = [await stage.tenant('a'), await stage.tenant('b')];
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

  it('a lowered limit takes slots from the newest schedulers, which wait in line again', async ({ stage }) => {
    const host = await stage.host();
    const [a, b, c] = [await stage.tenant('a'), await stage.tenant('b'), await stage.tenant('c')];
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
    expect((await held(stage)).map(({ kind }) => kind)).toEqual(['launcher']);
    const id = await stage.send(a, 'stop');
    expect(await stage.outcome(id), 'it still acts').toMatchObject({ outcome: 'stopped' });
    await stage.limit(64);
    for (const tenant of [b, c]) await stage.becomes(tenant, 'STARTED');
  });
});

describe('many tenants', () => {
  it('forty tenants start in a few turns', { timeout: 120_000 }, async ({ stage }) => {
    await stage.host();
    for (let i = 0; i < 4; i++) await Promise.all(Array.from({ length: 10 }, (_, j) => stage.tenant(`t${10 * i + j}`)));
    const { db } = stage.control;
    const transactions = async (): Promise<number> => {
      const row = await db.one<{ n: number }>(sql`
        select xact_commit as n from pg_stat_database where datname = current_database()`);
      return row.n;
    };
    const before = await transactions();
    await stage.launch();
    await until(
      'all are started',
      async () => {
        const row = await db.one<{ n: number }>(sql`select count(*) as n from launch where state = 'STARTED'`);
        return row.n === 40 || undefined;
      },
      60_000,
    );
    // the played host alone needs one transaction for each tenant
    expect((await transactions()) - before).toBeLessThan(400);
    expect(await db.rows(sql`select distinct order_no from launch`)).toEqual([{ order_no: 1 }]);
  });
});
