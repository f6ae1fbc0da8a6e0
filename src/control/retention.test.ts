import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../test/harness/fleet.ts';
import { HandTime } from '../../test/harness/hand-time.ts';
import { until } from '../../test/harness/until.ts';
import { append } from '../events/append.ts';
import { readEvents } from '../events/queries.ts';
import { silent } from '../kernel/log.ts';
import { sql } from '../kernel/sql.ts';
import { controlRetention } from './retention.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await makeFleet([]);
});
afterAll(() => fleet.close());

it('retention deletes old events of the control database, but never the newest', async () => {
  const control = fleet.control.db;
  const at = new Date('2026-01-01T00:00:00Z');
  const events = Array.from({ length: 5_000 }, (_, n) => ({ type: `e${n}`, subject: null, body: {} }));
  await control.transaction((tx) => append(tx, 1, events, { actor: 'test', at }));
  const retention = { ageMs: 86_400_000, runs: null, events: null };
  const service = controlRetention({ control, time: new HandTime('2026-01-03'), retention, log: silent });
  await service.start();
  try {
    const left = await until('they are gone', async () => {
      const events = await readEvents(control, { after: 0, limit: 10 });
      return events.length === 1 ? events : undefined;
    });
    expect(left.map((event) => event.type)).toEqual(['e4999']);
  } finally {
    await service.stop();
  }
});

it('retention deletes all workers without a beat for a day, and keeps the others', async () => {
  const control = fleet.control.db;
  const time = new HandTime('2026-01-03');
  await control.exec(sql`
    insert into worker (id, incarnation, name, addr, version, places, running, runtimes, queues, first_seen_at, beat_at)
    select gen_random_uuid(), 1, 'n' || n, '', '', 1, 0, '{}', '{}', at, at
      from (select n, ${new Date(time.now())}::timestamptz - n * interval '1 hour' as at from generate_series(0, 2500) n) w`);
  const retention = { ageMs: null, runs: null, events: null };
  const service = controlRetention({ control, time, retention, log: silent });
  await service.start();
  try {
    const left = await until('only those of a day are left', async () => {
      const workers = await control.rows<{ name: string }>(sql`select name from worker order by beat_at desc`);
      return workers.length <= 25 ? workers : undefined;
    });
    expect(left.map(({ name }) => name)).toEqual(Array.from({ length: 25 }, (_, n) => `n${n}`));
  } finally {
    await service.stop();
  }
});

it('retention deletes workers that never sent a heartbeat after five minutes', async () => {
  const control = fleet.control.db;
  const time = new HandTime('2026-01-05');
  await control.exec(sql`
    insert into worker (id, incarnation, name, addr, version, places, running, runtimes, queues, first_seen_at, beat_at)
    select gen_random_uuid(), incarnation, 'm' || minutes || ' ' || incarnation, '', '', 1, 0, '{}', '{}', at, at
      from (select incarnation, minutes, ${new Date(time.now())}::timestamptz - minutes * interval '1 minute' as at
              from unnest('{0,1}'::integer[]) incarnation, unnest('{4,6}'::integer[]) minutes) w`);
  const retention = { ageMs: null, runs: null, events: null };
  const service = controlRetention({ control, time, retention, log: silent });
  await service.start();
  try {
    const left = await until('one is gone', async () => {
      const workers = await control.rows<{ name: string }>(
        sql`select name from worker where name like 'm%' order by name`,
      );
      return workers.length < 4 ? workers : undefined;
    });
    expect(left.map(({ name }) => name)).toEqual(['m4 0', 'm4 1', 'm6 1']);
  } finally {
    await service.stop();
  }
});

it('retention deletes messages that were settled a month ago, and keeps the others', async () => {
  const control = fleet.control.db;
  const time = new HandTime('2026-03-01');
  const settled = [new Date('2026-01-29'), new Date('2026-01-31'), null];
  await control.exec(sql`
    insert into message (kind, tenant_id, tenant, sender, cause, sent_at, deadline, settled_at)
    select 'stop', gen_random_uuid(), 'a', 'a test', 'a test', '2026-01-01', '2026-01-02', at
      from unnest(${settled}::timestamptz[]) as at`);
  const retention = { ageMs: null, runs: null, events: null };
  const service = controlRetention({ control, time, retention, log: silent });
  await service.start();
  try {
    const left = await until('the old one is gone', async () => {
      const rows = await control.rows<{ at: Date | null }>(sql`select settled_at as at from message order by id`);
      return rows.length === 2 ? rows : undefined;
    });
    expect(left.map(({ at }) => at)).toEqual(settled.slice(1));
  } finally {
    await service.stop();
  }
});
