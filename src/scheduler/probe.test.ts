/** What a scheduler reports about itself: parts that do not work, queued triggers, and whether runs are ready. */
import type { ClientBase } from 'pg';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { activate, claim } from '../../test/harness/pipeline.ts';
import { after, minute, Schedule } from '../../test/harness/scheduling.ts';
import { until } from '../../test/harness/until.ts';
import type { Scheduler } from '../contract/engine.ts';
import { withClient } from '../postgres/databases.ts';
import { makeScheduler } from './scheduler.ts';

let all: Schedule;
let scheduler: Scheduler;
beforeEach(async () => {
  all = await Schedule.make();
  scheduler = makeScheduler(all.ctx);
  await scheduler.start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await scheduler.stop();
  await all.close();
});

/** Time by which `pass` moves all clocks: too long for an attempt. */
const passedMs = 80_000;

function pass(): void {
  const real = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => real() + passedMs);
  all.line.time.advance(passedMs);
}

/** Advances the time meanwhile, because a part that began to sleep after `pass` would not wake up. */
async function untilWell(): Promise<void> {
  await until('no part hangs', async () => {
    all.line.time.advance(1_000);
    return scheduler.probe().then(
      () => true,
      () => undefined,
    );
  });
}

async function isWaitedFor(client: ClientBase, table: string): Promise<boolean> {
  const waiting = 'select from pg_locks where not granted and relation = $1::regclass';
  return (await client.query(waiting, [`millrace.${table}`])).rows.length > 0;
}

it('a scheduler answers a probe while its parts wait for work', async () => {
  await scheduler.probe();
  pass();
  await untilWell();
});

it('a scheduler names the parts that hang, until they continue', async () => {
  await withClient(all.line.address, async (client) => {
    await client.query('begin; lock table millrace.live in access exclusive mode');
    // the next sweep of dispatch waits for the table
    all.line.time.advance(1_000);
    await until('a statement waits for the table', () => isWaitedFor(client, 'live'));
    pass();
    await expect(scheduler.probe()).rejects.toThrow(/^no progress for a minute: .*offering runs/);
    const dispatch = scheduler.faults?.().find(({ doing }) => doing === 'offering runs');
    expect(dispatch).toMatchObject({ isVital: true, message: null });
    expect(dispatch?.underWayMs).toBeGreaterThanOrEqual(passedMs);
    await client.query('rollback');
  });
  await untilWell();
});

/** Statements that break the tenant of a running scheduler, and the parts that then fail. */
const breaks = [
  ['a renamed function', 'alter function millrace.fire_triggers rename to lost', /firing triggers/],
  ['a renamed table of runs', 'alter table millrace.live rename to lost', /offering runs|releasing tokens|firing/],
  ['a renamed event log', 'alter table millrace.event rename to lost', /reading updates|firing triggers/],
  ['a read-only database', 'alter database $ set default_transaction_read_only = on', /firing triggers/],
] as const;

it.each(breaks)('a scheduler reports a vital part that fails every time: %s', async (_, statement, parts) => {
  const { address, time } = all.line;
  const job = await all.triggered({ start: after(minute) });
  all.tell(job);
  await all.waitsFor(after(minute));
  await withClient(address, async (client) => {
    await client.query(statement.replace('$ set', `${address.database} set`));
    if (statement.includes('$ set'))
      await client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
        [address.database],
      );
  });
  time.moveTo(after(minute));
  await until('a vital part has failed for some time', () => {
    time.advance(100);
    return scheduler
      .faults?.()
      .find(({ isVital, failingMs, doing }) => isVital && failingMs > 500 && parts.test(doing));
  });
});

it('a scheduler reports a single trigger that the database refuses as a part that is not vital', async () => {
  const { address, time } = all.line;
  await all.triggered({ start: after(60 * minute) }).then((other) => all.tell(other));
  const job = await all.triggered({ start: after(minute) });
  all.tell(job);
  await all.waitsFor(after(minute));
  await withClient(address, (client) =>
    client.query(`
      create function millrace.refuse() returns trigger language plpgsql as $$ begin raise 'poisoned'; end $$;
      create trigger refuse before insert on millrace.live for each row execute function millrace.refuse()`),
  );
  time.moveTo(after(minute));
  const fault = await until('it was refused twice', () => {
    time.advance(100);
    return scheduler.faults?.().find(({ failingMs }) => failingMs > 500);
  });
  expect(fault).toMatchObject({ isVital: false, message: 'poisoned' });
});

it('a scheduler reports the number of queued triggers, including those that are firing', async () => {
  const queued = () => all.ctx.statuses.at(-1)?.queuedTriggers;
  const job = await all.triggered({ start: after(minute) });
  all.tell(job);
  await all.waitsFor(after(minute));
  all.line.time.advance(5_000);
  await until('both are queued, this one and the sentinel', () => queued() === 2);
  await withClient(all.line.address, async (client) => {
    await client.query('begin; lock table millrace.firing in exclusive mode');
    all.line.time.moveTo(after(minute));
    await until('it is firing', () => isWaitedFor(client, 'firing'));
    const before = all.ctx.statuses.length;
    all.line.time.advance(5_000);
    await until('it has reported', () => all.ctx.statuses.length > before);
    expect(queued()).toBe(2);
    await client.query('rollback');
  });
  await all.firedAre(job, [after(minute)]);
});

it('a scheduler reports whether runs are ready', async () => {
  const ready = () => all.ctx.statuses.at(-1)?.ready;
  await until('none is', () => ready() === false);
  const job = await all.line.job({ tasks: [{ name: 'a' }] });
  await activate(all.line, [job.task('a')], ['2026-01-01T00:00:00Z']);
  all.line.time.advance(5_000);
  await until('one is', () => ready() === true);
  await claim(all.line, job.lane);
  all.line.time.advance(5_000);
  await until('none is left', () => ready() === false);
});
