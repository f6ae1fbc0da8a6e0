import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../test/harness/fresh-database.ts';
import { session } from '../../test/harness/launching.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { pause } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';
import { asLauncher, isTakenOver, Lease } from './lease.ts';

let control: ControlDatabase;
beforeAll(async () => {
  control = await makeControlDatabase();
});
afterAll(() => control.close());

const leases: Lease[] = [];
beforeEach(() => control.db.exec(sql`update launcher_lease set holder = null, renewed_at = '-infinity'`));
afterEach(() => Promise.all(leases.splice(0).map((lease) => lease.service.stop())));

function lease({ alone = false, db = control.db } = {}): Lease {
  const made = new Lease({
    db,
    launcherId: newId(),
    version: '1.0.0',
    alone,
    onChange: () => {},
    onError: () => {},
  });
  leases.push(made);
  return made;
}

const held = (by: Lease) => until('it has the lease', () => by.epoch);
const count = async () => (await control.db.one<{ n: number }>(sql`select count(*) as n from launcher`)).n;

describe('lease', () => {
  it('one launcher holds the lease; another stands by, and takes it as soon as it is released', async () => {
    const [first, second] = [lease(), lease()];
    await first.service.start();
    const epoch = await held(first);
    await second.service.start();
    await until('both are there', async () => (await count()) === 2 || undefined);
    expect(second.epoch).toBeUndefined();
    const before = performance.now();
    await first.service.stop();
    expect(await held(second)).toBe(epoch + 1);
    expect(performance.now() - before).toBeLessThan(4_000);
    expect(first.epoch).toBeUndefined();
    expect(await count()).toBe(1);
  });

  it('a lease that is not renewed is taken over after five seconds, and no sooner', async () => {
    const silent = newId();
    await control.db.exec(sql`
      update launcher_lease set holder = ${silent}, epoch = epoch + 1, renewed_at = clock_timestamp()`);
    // it may have been killed between two statements, and still be listed as standing by
    await control.db.exec(sql`
      insert into launcher (id, machine, pid, version, started_at, beat_at)
      values (${silent}, 'here', 1, '1.0.0', clock_timestamp(), clock_timestamp() + interval '1 minute')`);
    const before = performance.now();
    const next = lease();
    await next.service.start();
    await held(next);
    expect(performance.now() - before).toBeGreaterThan(4_900);
    expect(await count()).toBe(1);
    expect(performance.now() - before).toBeLessThan(20_000);
  });

  it('a launcher that is alone takes the lease at once when it starts, and not later', async () => {
    // gives the lease to another holder for longer than this test lasts
    const takeAway = () =>
      control.db.exec(sql`
        update launcher_lease
           set holder = ${newId()}, epoch = epoch + 1, renewed_at = clock_timestamp() + interval '5 minutes'`);
    await takeAway();
    const only = lease({ alone: true });
    await only.service.start();
    await until('it has the lease', () => only.epoch);
    await takeAway();
    await until('it has lost it', () => only.epoch === undefined || undefined);
    await pause(1_500);
    expect(only.epoch).toBeUndefined();
  });

  it('a write under a former epoch is refused', async () => {
    const first = lease();
    await first.service.start();
    const epoch = await held(first);
    await control.db.exec(sql`update launcher_lease set holder = ${newId()}, epoch = epoch + 1`);
    const late = asLauncher(control.db, epoch, (tx) => tx.exec(sql`delete from launcher`));
    await expect(late).rejects.toSatisfy(isTakenOver);
    expect(await count()).toBe(1);
  });

  it('a successor waits for a commit under way, and a transaction that freezes is ended', async () => {
    const first = lease();
    await first.service.start();
    const epoch = await held(first);
    await first.service.stop();
    const client = await session(control.address);
    await client.query(`set search_path to control; set idle_in_transaction_session_timeout to '3s'`);
    await client.query('begin');
    await client.query('select assert_epoch($1)', [epoch]);
    const before = performance.now();
    const next = lease();
    await next.service.start();
    expect(await held(next)).toBe(epoch + 1);
    expect(performance.now() - before).toBeGreaterThan(2_500);
    await expect(client.query('commit')).rejects.toThrow();
  });

  it('a holder that could not renew its lease gives hosts time to beat before it judges them', async () => {
    const first = lease();
    await first.service.start();
    await held(first);
    expect(first.mayJudge, 'a new holder does not know the time before').toBe(false);
    await until('it has been awake for long enough', () => first.mayJudge || undefined);
    const blocker = await session(control.address);
    await blocker.query('begin; lock table control.launcher in access exclusive mode');
    await until('it has not been heard of', () => first.epoch === undefined || undefined);
    await blocker.query('commit');
    await held(first);
    expect(first.mayJudge).toBe(false);
    await blocker.end();
  });

  it.each([1, -1])('a holder gives hosts time to beat after the clock of the server was set (%i h)', async (hours) => {
    const first = lease({ alone: true });
    await first.service.start();
    await held(first);
    const nowMs = Date.now();
    first.noteServerTime(new Date(nowMs));
    first.noteServerTime(new Date(nowMs + 1_000));
    expect(first.mayJudge, 'an answer that took a second').toBe(true);
    first.noteServerTime(new Date(nowMs + hours * 3_600_000));
    expect(first.mayJudge).toBe(false);
  });

  it('a launcher on a machine that wakes up does not count as the holder until it renews the lease', async () => {
    const first = lease({ alone: true });
    await first.service.start();
    const epoch = await held(first);
    expect(first.mayJudge).toBe(true);
    const wall = Date.now();
    const asleep = vi.spyOn(Date, 'now').mockImplementation(() => wall + 3_600_000);
    expect([first.epoch, first.mayJudge]).toEqual([undefined, false]);
    await until('it is renewed', () => first.epoch === epoch || undefined);
    expect(first.mayJudge, 'hosts were asleep, too').toBe(false);
    asleep.mockRestore();
  });
});
