/**
 * Flows with two conductors on one tenant: each of them dies at every checkpoint, one freezes, connections are lost. Every execution
 * ends as it would have, each call keeps its key, and no timer is early.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { conductorCheckpoints } from '../../src/conductor/checkpoints.ts';
import { sql } from '../../src/kernel/sql.ts';
import { until } from '../harness/until.ts';
import { FlowWalk } from './flow-walk.ts';

let walk: FlowWalk;
beforeAll(async () => {
  walk = await FlowWalk.start();
});
afterAll(() => walk?.close());

const walked = conductorCheckpoints.filter((name) => name !== 'takeover.put');

it('a conductor that dies at a checkpoint comes back, and the other goes on', { timeout: 300_000 }, async () => {
  const [first] = walk.conductors;
  if (first === undefined) throw new Error('no conductor');
  for (const name of walked) await walk.dieAt(first, `${name}:3`);
  await walk.allDone();
});

it('a conductor that dies while it takes over leaves the rest to the next', { timeout: 100_000 }, async () => {
  const [first, second] = walk.conductors;
  if (first === undefined || second === undefined) throw new Error('no conductors');
  await second.kill();
  await walk.launch(300);
  await second.restart({ MILLRACE_CHECKPOINT: 'takeover.put:2' });
  const ended = second.ending();
  await walk.registered(2);
  await until('calls are under way', async () => {
    const { count } = await walk.db.one<{ count: number }>(sql`
      select count(*)::integer as count from execution where calls > 0 and status < 3`);
    return count > 10 || undefined;
  });
  await first.kill();
  expect(await ended).toMatchObject({ signal: 'SIGKILL' });
  await Promise.all([first.restart(), second.restart()]);
  await walk.allDone();
});

it('a frozen conductor is taken for dead, and goes on under a new id', { timeout: 100_000 }, async () => {
  const [first] = walk.conductors;
  if (first === undefined) throw new Error('no conductor');
  await walk.registered(2);
  await walk.launch(40);
  first.signal('SIGSTOP');
  await walk.launch(20);
  await walk.allDone();
  await until('it is dead', async () => {
    const rows = await walk.control.rows(sql`
      select id from conductor where lost_at is null and beat_at > clock_timestamp() - interval '5 s'`);
    return rows.length === 1 || undefined;
  });
  first.signal('SIGCONT');
  await walk.registered(2);
  await walk.launch(20);
  await walk.allDone();
});

it('lost connections cost nothing but time', { timeout: 100_000 }, async () => {
  for (let round = 0; round < 5; round++) {
    await walk.launch(20);
    await walk.control.exec(sql`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'millrace conductor%'`);
  }
  await walk.allDone();
});

it('each execution has one chain of commits, each call one key, and no timer was early', async () => {
  expect(await walk.faultsOfExecutions()).toEqual([]);
  expect(walk.faults).toEqual([]);
});
