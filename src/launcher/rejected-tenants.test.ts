/** No tenant stops the launcher's turns (I11): one whose rows cannot be written is left out, the others go on. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeStage, session, type Stage, type StagedTenant } from '../../test/harness/launching.ts';
import { until } from '../../test/harness/until.ts';
import { type Log, silent } from '../kernel/log.ts';
import { sql } from '../kernel/sql.ts';

let stage: Stage;
let told: string[];
beforeEach(async () => {
  stage = await makeStage();
  told = [];
});
afterEach(() => stage.close());

const warn = (_: object, text: string): void => {
  told.push(text);
};
const log: Log = { ...silent, warn: warn as Log['warn'] };

const timesTold = (part: string): number => told.filter((text) => text.includes(part)).length;

/** As one whose process is known to have ended. */
const lose = (hostId: string) =>
  stage.control.db.exec(sql`update host set leaving = true, beat_at = '-infinity' where id = ${hostId}`);

/** Nothing about that tenant can be written to this table. */
async function refuse(table: 'launch' | 'tenant', column: string, id: string): Promise<void> {
  await stage.control.pool.query(`
    create function control.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not this one' using errcode = '23514'; end $$;
    create trigger refuse before insert or update on control.${table}
      for each row when (new.${column} = '${id}') execute function control.refuse()`);
}

describe('a tenant of which nothing can be written', () => {
  it('is left out and told of once; the others run, stop and start, and it follows when it can be', async () => {
    await stage.host();
    const bad = await stage.tenant('bad');
    const others = [await stage.tenant('a'), await stage.tenant('b'), await stage.tenant('c')];
    await refuse('launch', 'tenant_id', bad.id);
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
    expect(told.filter((text) => text.includes('cannot be written'))).toHaveLength(1);
    const slots = await stage.control.db.rows(
      sql`select 1 from slot where kind = 'scheduler' and granted_at is not null`,
    );
    expect(slots).toHaveLength(4);
  });

  it('is left out, too, while somebody has its row locked', async () => {
    await stage.host();
    const [locked, other] = [await stage.tenant('locked'), await stage.tenant('other')];
    await stage.launch({ log });
    for (const tenant of [locked, other]) await stage.becomes(tenant, 'STARTED');
    const somebody = await session(stage.control.address);
    await somebody.query('begin');
    await somebody.query('select from control.launch where tenant_id = $1 for update', [locked.id]);
    const waits = await stage.send(locked, 'stop');
    expect(await stage.outcome(await stage.send(other, 'stop'))).toMatchObject({ outcome: 'stopped' });
    expect(await stage.view(locked)).toMatchObject({ state: 'STARTED' });
    await somebody.query('rollback');
    expect(await stage.outcome(waits)).toMatchObject({ outcome: 'stopped' });
    await somebody.end();
  });

  it('does not keep the turn from going on where it is the server’s databases that cannot be written down', async () => {
    await stage.host();
    const [bad, other] = [await stage.tenant('bad'), await stage.tenant('other')];
    await refuse('tenant', 'id', bad.id);
    await stage.launch({ log });
    await stage.becomes(other, 'STARTED');
    await stage.becomes(bad, 'STARTED');
    const seen = () => stage.control.db.rows(sql`select 1 from tenant where database_oid is not null`);
    expect(await seen(), 'the other’s').toHaveLength(1);
    await stage.control.pool.query('drop trigger refuse on control.tenant');
    await until('both databases are seen', async () => (await seen()).length === 2 || undefined);
    expect(told).toHaveLength(1);
  });
});

describe('a host that is lost', () => {
  it('is forgotten, and its tenants go on elsewhere, though the row of one of them is locked', async () => {
    const host = await stage.host();
    const [locked, other] = [await stage.tenant('locked'), await stage.tenant('other')];
    await stage.launch({ log });
    for (const tenant of [locked, other]) await stage.becomes(tenant, 'STARTED');
    const somebody = await session(stage.control.address);
    await somebody.query('begin');
    await somebody.query('select from control.launch where tenant_id = $1 for update', [locked.id]);
    await host.freeze();
    // one for each: both are suspected to have caused the loss, and suspects do not share a host
    const others = new Set([(await stage.host()).id, (await stage.host()).id]);
    const runsElsewhere = async (tenant: StagedTenant): Promise<boolean> =>
      others.has((await stage.view(tenant))?.host_id ?? '');
    await lose(host.id);
    await until('the other tenant runs elsewhere', () => runsElsewhere(other));
    expect(await stage.control.db.rows(sql`select from host where id = ${host.id}`)).toEqual([]);
    expect(await stage.view(locked)).toMatchObject({ state: 'STARTED', host_id: host.id });
    await somebody.query('rollback');
    await until('so does the locked tenant', () => runsElsewhere(locked));
    await somebody.end();
  });

  it('and cannot be forgotten stops no tenant, and is neither killed nor told of turn by turn', async () => {
    const host = await stage.host();
    const tenant = await stage.tenant('a');
    await stage.launch({ log });
    await stage.becomes(tenant, 'STARTED');
    await host.freeze();
    const next = await stage.host();
    await lose(host.id);
    const somebody = await session(stage.control.address);
    await somebody.query('begin');
    await somebody.query('select from control.host where id = $1 for update', [host.id]);
    await until('it runs elsewhere', async () => (await stage.view(tenant))?.host_id === next.id || undefined);
    expect(timesTold('cannot be written')).toBe(1);
    expect([timesTold('host lost'), stage.killed]).toEqual([0, []]);
    await somebody.query('rollback');
    await until('it is forgotten', () => stage.killed.length > 0 || undefined);
    expect([timesTold('host lost'), stage.killed]).toEqual([1, [host.pid]]);
    await somebody.end();
  });
});
