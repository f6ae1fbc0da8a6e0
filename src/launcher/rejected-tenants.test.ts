/** No tenant stops the launcher's turns (I11): a tenant whose rows cannot be written is left out, the others continue. */
import { describe, expect } from 'vitest';
import { session, type Stage, type StagedTenant, stageTest as it } from '../../test/harness/launching.ts';
import { until } from '../../test/harness/until.ts';
import { type Log, silent } from '../kernel/log.ts';
import { sql } from '../kernel/sql.ts';

/** A log that keeps its warnings. */
function listen(): { readonly log: Log; readonly logged: string[]; readonly timesLogged: (part: string) => number } {
  const logged: string[] = [];
  const warn = (_: object, text: string): void => {
    logged.push(text);
  };
  return {
    log: { ...silent, warn: warn as Log['warn'] },
    logged,
    timesLogged: (part) => logged.filter((text) => text.includes(part)).length,
  };
}

/** Marks the host as one whose process is known to have ended. */
const lose = ({ control }: Stage, hostId: string) =>
  control.db.exec(sql`update host set leaving = true, beat_at = '-infinity' where id = ${hostId}`);

/** Makes the table reject rows of that tenant. */
async function refuse({ control }: Stage, table: 'launch' | 'tenant', column: string, id: string): Promise<void> {
  await control.pool.query(`
    create function control.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not this one' using errcode = '23514'; end $$;
    create trigger refuse before insert or update on control.${table}
      for each row when (new.${column} = '${id}') execute function control.refuse()`);
}

describe.concurrent('tenant whose rows cannot be written', () => {
  it('a rejected tenant is left out and logged once; the others run, stop and start, and it follows later', async ({
    stage,
  }) => {
    const { log, timesLogged } = listen();
    await stage.host();
    const bad = await stage.tenant('bad');
    const others = [await stage.tenant('a'), await stage.tenant('b'), await stage.tenant('c')];
    await refuse(stage, 'launch', 'tenant_id', bad.id);
    await stage.launch({ log });
    for (const tenant of others) await stage.becomes(tenant, 'STARTED');
    expect(await stage.view(bad)).toBeUndefined();
    for (const tenant of others) {
      expect(await stage.outcome(await stage.send(tenant, 'stop'))).toMatchObject({ outcome: 'stopped' });
      expect(await stage.outcome(await stage.send(tenant, 'start'))).toMatchObject({ outcome: 'started' });
    }
    const message = await stage.send(bad, 'restart');
    await stage.control.pool.query('drop trigger refuse on control.launch');
    expect(await stage.outcome(message)).toMatchObject({ outcome: 'started' });
    expect(timesLogged('rows rejected')).toBe(1);
    const slots = await stage.control.db.rows(
      sql`select 1 from slot where kind = 'scheduler' and granted_at is not null`,
    );
    expect(slots).toHaveLength(4);
  });

  it('a tenant is left out while its row is locked', async ({ stage }) => {
    const { log } = listen();
    await stage.host();
    const [locked, other] = [await stage.tenant('locked'), await stage.tenant('other')];
    await stage.launch({ log });
    for (const tenant of [locked, other]) await stage.becomes(tenant, 'STARTED');
    const locker = await session(stage.control.address);
    await locker.query('begin');
    await locker.query('select from control.launch where tenant_id = $1 for update', [locked.id]);
    const waits = await stage.send(locked, 'stop');
    expect(await stage.outcome(await stage.send(other, 'stop'))).toMatchObject({ outcome: 'stopped' });
    expect(await stage.view(locked)).toMatchObject({ state: 'STARTED' });
    await locker.query('rollback');
    expect(await stage.outcome(waits)).toMatchObject({ outcome: 'stopped' });
    await locker.end();
  });

  it('a discovery that cannot be written does not stop the turn', async ({ stage }) => {
    const { log, logged } = listen();
    await stage.host();
    const [bad, other] = [await stage.tenant('bad'), await stage.tenant('other')];
    await refuse(stage, 'tenant', 'id', bad.id);
    await stage.launch({ log });
    await stage.becomes(other, 'STARTED');
    await stage.becomes(bad, 'STARTED');
    const seen = () => stage.control.db.rows(sql`select 1 from tenant where database_oid is not null`);
    expect(await seen(), 'the other’s').toHaveLength(1);
    await stage.control.pool.query('drop trigger refuse on control.tenant');
    await until('both databases are seen', async () => (await seen()).length === 2 || undefined);
    expect(logged).toHaveLength(1);
  });
});

describe.concurrent('lost host', () => {
  it('a lost host is deleted, and its tenants start elsewhere, although the row of one of them is locked', async ({
    stage,
  }) => {
    const { log } = listen();
    const host = await stage.host();
    const [locked, other] = [await stage.tenant('locked'), await stage.tenant('other')];
    await stage.launch({ log });
    for (const tenant of [locked, other]) await stage.becomes(tenant, 'STARTED');
    const locker = await session(stage.control.address);
    await locker.query('begin');
    await locker.query('select from control.launch where tenant_id = $1 for update', [locked.id]);
    await host.freeze();
    // one for each: both are suspected to have caused the loss, and suspects do not share a host
    const others = new Set([(await stage.host()).id, (await stage.host()).id]);
    const runsElsewhere = async (tenant: StagedTenant): Promise<boolean> =>
      others.has((await stage.view(tenant))?.host_id ?? '');
    await lose(stage, host.id);
    await until('the other tenant runs elsewhere', () => runsElsewhere(other));
    expect(await stage.control.db.rows(sql`select from host where id = ${host.id}`)).toEqual([]);
    expect(await stage.view(locked)).toMatchObject({ state: 'STARTED', host_id: host.id });
    await locker.query('rollback');
    await until('so does the locked tenant', () => runsElsewhere(locked));
    await locker.end();
  });

  it('a lost host whose row is locked stops no tenant, and is killed and logged once', async ({ stage }) => {
    const { log, timesLogged } = listen();
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    await stage.launch({ log });
    await stage.becomes(tenant, 'STARTED');
    await host.freeze();
    const next = await stage.host();
    await lose(stage, host.id);
    const locker = await session(stage.control.address);
    await locker.query('begin');
    await locker.query('select from control.host where id = $1 for update', [host.id]);
    await until('it runs elsewhere', async () => (await stage.view(tenant))?.host_id === next.id || undefined);
    expect(timesLogged('rows rejected')).toBe(1);
    expect([timesLogged('host lost'), stage.killed]).toEqual([0, []]);
    await locker.query('rollback');
    await until('it is forgotten', () => stage.killed.length > 0 || undefined);
    expect([timesLogged('host lost'), stage.killed]).toEqual([1, [host.pid]]);
    await locker.end();
  });
});
