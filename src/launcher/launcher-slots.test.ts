/** Slots as the launcher gives them, and how few statements many tenants take. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeStage, type Stage, type StagedTenant } from '../../test/harness/launching.ts';
import type { PlayedHost } from '../../test/harness/played-host.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
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

async function ask(tenant: StagedTenant, ago = '0 s'): Promise<string> {
  const id = newId();
  await db().exec(sql`
    insert into slot (id, kind, tenant_id, holder, reason, asked_at)
    values (${id}, 'housekeeping', ${tenant.id}, ${host.id}, 'retention', clock_timestamp() - ${ago}::interval)`);
  stage.hub.send('launcher', 'words');
  return id;
}
const isGranted = async (id: string) =>
  (await db().maybeOne<{ granted: boolean }>(sql`select granted_at is not null as granted from slot where id = ${id}`))
    ?.granted;

describe('slots', () => {
  it('are given in order of asking; who gets none knows its place in the line, and gets one that is freed', async () => {
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

  it('are not stolen from one that restarts', async () => {
    await stage.limit(2);
    const [a, b] = await tenants('a', 'b');
    if (!a || !b) throw new Error('two were made');
    await stage.launch();
    await stage.becomes(a, 'STARTED');
    await stage.becomes(b, 'ENABLED', 'no_slot');
    const housekeeping = await ask(a);
    host.letsGo = false;
    const id = await stage.send(a, 'restart');
    await stage.becomes(a, 'ALLOCATED', 'stopping');
    host.letsGo = true;
    expect(await stage.outcome(id)).toMatchObject({ outcome: 'started' });
    expect(await stage.view(a)).toMatchObject({ order_no: 2 });
    expect(await stage.view(b)).toMatchObject({ state: 'ENABLED', code: 'no_slot', order_no: 0 });
    expect(await isGranted(housekeeping)).toBe(false);
  });

  it('go to housekeeping when no scheduler waits, which keeps them until it is done', async () => {
    await stage.limit(3);
    const [a, b] = await tenants('a', 'b');
    if (!a || !b) throw new Error('two were made');
    await stage.launch({ embedded: true });
    for (const tenant of [a, b]) await stage.becomes(tenant, 'STARTED');
    const first = await ask(a);
    await stage.send(b, 'stop');
    await until('it is granted', () => isGranted(first));
    await stage.send(b, 'start');
    await stage.becomes(b, 'ENABLED', 'no_slot');
    expect(await isGranted(first), 'a scheduler does not take it away').toBe(true);
    await db().exec(sql`delete from slot where id = ${first}`);
    stage.hub.send('launcher', 'words');
    await stage.becomes(b, 'STARTED');
  });

  it('are lent to housekeeping that has waited for long where schedulers have them all, and no scheduler loses its', async () => {
    await stage.limit(3);
    const [a, b] = await tenants('a', 'b');
    if (!a || !b) throw new Error('two were made');
    await stage.launch();
    for (const tenant of [a, b]) await stage.becomes(tenant, 'STARTED');
    const [early, late] = [await ask(a), await ask(b, '21 s')];
    await until('it is granted', () => isGranted(late));
    expect(await isGranted(early)).toBe(false);
    expect(await db().rows(sql`select id from slot where lent`)).toEqual([{ id: late }]);
    for (const tenant of [a, b]) expect(await stage.view(tenant)).toMatchObject({ state: 'STARTED', order_no: 1 });
    const c = await stage.tenant('c');
    await stage.becomes(c, 'ENABLED', 'no_slot');
    await stage.limit(4);
    await stage.becomes(c, 'STARTED');
  });

  it('go to the tenant whose housekeeping was served longest ago, also by a launcher that has just taken over', async () => {
    await stage.limit(4);
    const [a, b] = await tenants('a', 'b');
    if (!a || !b) throw new Error('two were made');
    const first = await stage.launch();
    for (const tenant of [a, b]) await stage.becomes(tenant, 'STARTED');
    const served = await ask(a);
    await until('it is granted', () => isGranted(served));
    await first.stop();
    const again = await ask(a);
    const never = await ask(b);
    await db().exec(sql`delete from slot where id = ${served}`);
    await stage.launch();
    await until('one is granted', async () => (await isGranted(again)) || (await isGranted(never)) || undefined);
    expect([await isGranted(again), await isGranted(never)]).toEqual([false, true]);
  });

  it('beyond a lowered limit are taken from the newest schedulers, who go back to the line', async () => {
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

describe('a hundred tenants', () => {
  it('are started in a few turns', { timeout: 120_000 }, async () => {
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
    // the played host alone takes one for each tenant
    expect((await transactions()) - before).toBeLessThan(1_000);
    expect(await db().rows(sql`select distinct order_no from launch`)).toEqual([{ order_no: 1 }]);
  });
});
