/** What a scheduler says of itself: which of its parts do not work, and whether runs are ready. */
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

/** Passes on every clock: too long for an attempt. */
const passedMs = 80_000;

function pass(): void {
  const real = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => real() + passedMs);
  all.line.time.advance(passedMs);
}

/** Time goes on meanwhile: whoever lay down just after it passed would sleep for good. */
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

it('answers a probe while its parts wait for something to do', async () => {
  await scheduler.probe();
  pass();
  await untilWell();
});

it('names the parts that hang, until they go on', async () => {
  await withClient(all.line.address, async (client) => {
    await client.query('begin; lock table millrace.live in access exclusive mode');
    // dispatch comes round to the table, and does not come back
    all.line.time.advance(1_000);
    await until('somebody waits for the table', () => isWaitedFor(client, 'live'));
    pass();
    await expect(scheduler.probe()).rejects.toThrow(/^no progress for a minute: .*offering runs/);
    const dispatch = scheduler.faults?.().find(({ doing }) => doing === 'offering runs');
    expect(dispatch).toMatchObject({ isVital: true, message: null });
    expect(dispatch?.underWayMs).toBeGreaterThanOrEqual(passedMs);
    await client.query('rollback');
  });
  await untilWell();
});

/** Statements of somebody who breaks the tenant under a scheduler that runs, and of somebody who repairs it. */
const breaks = [
  ['a renamed function', 'alter function millrace.fire_triggers rename to lost', /firing triggers/],
  ['a renamed table of runs', 'alter table millrace.live rename to lost', /offering runs|releasing tokens|firing/],
  ['a renamed event log', 'alter table millrace.event rename to lost', /reading updates|firing triggers/],
  ['a read-only database', 'alter database $ set default_transaction_read_only = on', /firing triggers/],
] as const;

it.each(breaks)('reports a vital part that fails every time: %s', async (_, statement, parts) => {
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

it('reports a trigger that the database refuses, while others may fire, as a part that is not vital', async () => {
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

it('counts the triggers that stand in its queue, those that are firing too', async () => {
  const told = () => all.ctx.statuses.at(-1)?.queuedTriggers;
  const job = await all.triggered({ start: after(minute) });
  all.tell(job);
  await all.waitsFor(after(minute));
  all.line.time.advance(5_000);
  await until('both stand there, this one and the one that is always there', () => told() === 2);
  await withClient(all.line.address, async (client) => {
    await client.query('begin; lock table millrace.firing in exclusive mode');
    all.line.time.moveTo(after(minute));
    await until('it is firing', () => isWaitedFor(client, 'firing'));
    const before = all.ctx.statuses.length;
    all.line.time.advance(5_000);
    await until('it has told', () => all.ctx.statuses.length > before);
    expect(told()).toBe(2);
    await client.query('rollback');
  });
  await all.firedAre(job, [after(minute)]);
});

it('tells whether runs are ready', async () => {
  const said = () => all.ctx.statuses.at(-1)?.ready;
  await until('none is', () => said() === false);
  const job = await all.line.job({ tasks: [{ name: 'a' }] });
  await activate(all.line, [job.task('a')], ['2026-01-01T00:00:00Z']);
  all.line.time.advance(5_000);
  await until('one is', () => said() === true);
  await claim(all.line, job.lane);
  all.line.time.advance(5_000);
  await until('none is left', () => said() === false);
});
