import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../test/harness/fleet.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import { within } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { registerHost } from './host-queries.ts';
import { Housekeeping } from './housekeeping.ts';

let fleet: Fleet;
let house: Housekeeping;
let hostId = '';
const going = new AbortController().signal;
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
});
afterAll(() => fleet.close());
beforeEach(async () => {
  hostId = newId();
  await registerHost(fleet.control.db, { id: hostId, machine: 'm', pid: 1, engine: '1', memory: 1 });
  house = await open(60_000);
});
afterEach(async () => {
  await house.service.stop();
  await fleet.control.db.exec(sql`delete from slot`);
});

async function open(longestWaitMs: number): Promise<Housekeeping> {
  const { hub } = fleet;
  const opened = new Housekeeping({
    control: fleet.control.db,
    hub,
    hostId: () => hostId,
    log: silent,
    longestWaitMs,
    endMs: 200,
  });
  await opened.service.start();
  return opened;
}

const tenant = (name: 'a' | 'b') =>
  fleet.tenants.find(({ row }) => row.name === name)?.row ?? expect.fail('no such tenant');
type SlotRow = { kind: string; tenant: string; holder: string; reason: string; granted: boolean };
const slots = (): Promise<SlotRow[]> =>
  fleet.control.db.rows<SlotRow>(sql`
    select kind, name as tenant, holder, reason, granted_at is not null as granted
      from slot join tenant on tenant.id = tenant_id order by asked_at`);
const asked = (n: number) => until(`${n} have asked`, async () => (await slots()).length === n);
const grant = async (): Promise<void> => {
  await fleet.control.db.exec(sql`update slot set granted_at = now() where granted_at is null`);
  house.wake();
};
const gone = () => until('no slot is left', async () => (await slots()).length === 0);

describe('housekeeping', () => {
  it('gives back what nobody here knows of: a request whose answer was lost', async () => {
    await house.service.stop();
    const ask = (reason: string, holder: string, age: string) =>
      fleet.control.db.exec(sql`
        insert into slot (id, kind, tenant_id, holder, reason, asked_at)
        values (${newId()}, 'housekeeping', ${tenant('a').id}, ${holder}, ${reason}, now() - ${age}::interval)`);
    await ask('unknown', hostId, '2 minutes');
    await ask('of another', newId(), '1 minute');
    await ask('perhaps being asked for', hostId, '0 minutes');
    house = await open(60_000);
    await until('it is given back', async () => (await slots()).length === 2);
    expect((await slots()).map(({ reason }) => reason)).toEqual(['of another', 'perhaps being asked for']);
  });

  it('waits for a slot, works in it, and gives it back', async () => {
    const done: string[] = [];
    const work = house.of(tenant('a'), going)('retention', async () => {
      done.push(...(await slots()).map(({ granted }) => String(granted)));
      return 7;
    });
    await asked(1);
    expect(await slots()).toEqual([
      { kind: 'housekeeping', tenant: 'a', holder: hostId, reason: 'retention', granted: false },
    ]);
    expect(done).toEqual([]);
    await grant();
    expect(await work).toBe(7);
    expect(done).toEqual(['true']);
    await gone();
  });

  it('hears of a grant that nobody told it of', async () => {
    const work = house.of(tenant('a'), going)('retention', async () => 7);
    await asked(1);
    await fleet.control.db.exec(sql`update slot set granted_at = now()`);
    expect(await work).toBe(7);
  });

  it('tells the launcher when it asks and when it gives back', async () => {
    let told = 0;
    const stop = fleet.hub.on('launcher', 'words', () => (told += 1));
    const work = house.of(tenant('a'), going)('retention', async () => {});
    await asked(1);
    await until('it was told', () => told === 1);
    await grant();
    await work;
    await gone();
    await until('it was told', () => told === 2);
    stop();
  });

  it('is asked for by a tenant one at a time, and by others meanwhile', async () => {
    const order: string[] = [];
    const of = (name: 'a' | 'b', what: string) =>
      house.of(tenant(name), going)(what, async () => void order.push(`${name} ${what}`));
    const first = of('a', '1');
    const second = of('a', '2');
    const other = of('b', '1');
    await asked(2);
    expect((await slots()).map((slot) => slot.tenant).sort()).toEqual(['a', 'b']);
    await grant();
    await Promise.all([first, other]);
    await until('the second asks', async () => (await slots()).some(({ reason }) => reason === '2'));
    await grant();
    await second;
    expect(order.indexOf('a 2')).toBe(2);
    await gone();
  });

  it('is left for another time when no slot comes free for long', async () => {
    const impatient = await open(100);
    let worked = false;
    expect(await impatient.of(tenant('a'), going)('vacuum', async () => (worked = true))).toBeUndefined();
    expect(worked).toBe(false);
    await gone();
    await impatient.service.stop();
  });

  it('is not waited for by a scheduler that is to stop', async () => {
    const over = new AbortController();
    const work = house.of(tenant('a'), over.signal)('vacuum', async () => 7);
    await asked(1);
    const startedAt = performance.now();
    over.abort();
    expect(await work).toBeUndefined();
    expect(performance.now() - startedAt).toBeLessThan(500);
    expect(await house.of(tenant('a'), over.signal)('vacuum', async () => 7)).toBeUndefined();
    await gone();
  });

  it('that hangs is left to itself when its scheduler ends: its slot is given back, and the next one asks', async () => {
    const over = new AbortController();
    const hung = house.of(tenant('a'), over.signal)('vacuum', () => new Promise(() => {}));
    await asked(1);
    await grant();
    expect(
      await within(
        500,
        hung.then(() => 'over'),
      ),
    ).toBeUndefined();
    const next = house.of(tenant('a'), going)('retention', async () => 7);
    over.abort();
    expect(await hung).toBeUndefined();
    await until('the next one asks', async () => (await slots()).some(({ reason }) => reason === 'retention'));
    await grant();
    expect(await next).toBe(7);
    await gone();
  });

  it('gives its slot back when the work fails', async () => {
    const work = house.of(tenant('a'), going)('vacuum', async () => {
      throw new Error('no luck');
    });
    const failed = expect(work).rejects.toThrow('no luck');
    await asked(1);
    await grant();
    await failed;
    await gone();
  });

  it('asks for nothing when its host was written off, or the tenant is gone', async () => {
    expect(await house.of({ id: newId(), name: 'x' }, going)('vacuum', async () => 7)).toBeUndefined();
    await fleet.control.db.exec(sql`delete from host`);
    expect(await house.of(tenant('a'), going)('vacuum', async () => 7)).toBeUndefined();
    await sleep(50);
    expect(await slots()).toEqual([]);
  });
});
