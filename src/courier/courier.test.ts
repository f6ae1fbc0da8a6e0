/** The shell of a courier against the contract: real databases, a real loader, and an engine whose bus is a small implementation. */
import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet, setDesired } from '../../test/harness/fleet.ts';
import { until } from '../../test/harness/until.ts';
import { batchSent } from '../bus/telemetry.ts';
import type { Courier, CourierContext } from '../contract/bus.ts';
import type { Engine } from '../contract/engine.ts';
import { systemTime } from '../kernel/time.ts';
import { makeDirectory } from '../control/directory.ts';
import { courierTallies, readCourierStanding } from '../control/courier-queries.ts';
import { engine } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { machine } from '../kernel/process/machine.ts';
import { silent } from '../kernel/log.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { makeTelemetry } from '../kernel/telemetry.ts';
import { type CourierProcess, makeCourier } from './courier.ts';
import type { ServedTimes } from '../loader/served/served-tenant.ts';

let fleet: Fleet;
let couriers: CourierProcess[] = [];
/** The calls of the services, in order: `start a`, `wake a`, `stop a`. */
let steps: string[] = [];
let busy = new Set<string>();
let failing = new Set<string>();
/** The lost couriers that the service of each tenant is told of. */
const lostAt = new Map<string, () => readonly string[]>();

beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
});
afterEach(async () => {
  await Promise.all(couriers.map((courier) => courier.stop()));
  await fleet.control.db.exec(sql`delete from bus`);
  for (const { row } of fleet.tenants) await setDesired(fleet.control, row.id, 'on');
  [couriers, steps, busy, failing] = [[], [], new Set(), new Set()];
});
afterAll(() => fleet.close());

function smallCourier(ctx: CourierContext): Courier {
  const { name } = ctx.tenant;
  lostAt.set(name, () => ctx.courier.lost?.() ?? []);
  const note = (step: string): unknown => steps.push(`${step} ${name}`);
  return {
    name: 'small',
    start: async () => {
      if (failing.has(name)) throw new Error('it will not start');
      await onPool(ctx.pool).one(sql`select 1 as x`);
      note('start');
    },
    wake: () => void note('wake'),
    stop: async () => {
      // the last statement: errands are given back
      await onPool(ctx.pool).one(sql`select 1 as x`);
      note('stop');
    },
    nextDueAt: () => undefined,
    isIdle: () => !busy.has(name),
    probe: async () => {},
    standing: async () => ({
      errands: { main: { ready: 2 } },
      subscribers: [{ name: `${name}--1`, queued: 7, oldestMs: 1_500, health: 98 }],
    }),
  };
}

const fast: Partial<ServedTimes> = {
  idleMs: 300,
  checkedMs: 50,
  probeEveryMs: 100,
  changedMs: 50,
  retry: { firstMs: 20, capMs: 50, jitter: 0 },
};

async function start(more: Partial<ServedTimes> = {}, bus?: Engine['bus']) {
  const telemetry = makeTelemetry(() => {});
  const publish = async (): Promise<never> => Promise.reject(new Error('not here'));
  const loader = fleet.newLoader({ engines: [{ ...engine, bus: bus ?? { publish, courier: smallCourier } }] });
  const outbound = { post: () => Promise.reject(new Error('not here')), close: () => {} };
  const courier = makeCourier({
    control: fleet.control.db,
    hub: fleet.hub,
    loader,
    outbound,
    telemetry,
    version: '1',
    now: () => Date.now(),
    log: silent,
    times: { ...fast, ...more },
  });
  couriers.push(courier);
  await courier.start();
  return { courier, telemetry, loader };
}

async function subscribe(...names: readonly string[]): Promise<void> {
  for (const { row } of fleet.tenants.filter((tenant) => names.includes(tenant.row.name)))
    await fleet.control.db.exec(sql`
      insert into bus (tenant_id, subscribers, changed_at) values (${row.id}, 1, now() - interval '1 minute')`);
}

const idOf = (name: string): string => fleet.tenants.find(({ row }) => row.name === name)?.row.id ?? '';
const has =
  (...wanted: readonly string[]) =>
  () =>
    wanted.every((step) => steps.includes(step)) || undefined;
const count = (step: string): number => steps.filter((each) => each === step).length;

it('a tenant with subscribers is served, one without is not, and one without work stops and closes its pool', async () => {
  await subscribe('a');
  const { courier, loader } = await start();
  await until('a was served', has('start a', 'wake a', 'stop a'));
  await until('a rests', () => courier.phases()['resting'] === 1 || undefined);
  expect(steps.some((step) => step.endsWith(' b'))).toBe(false);
  const first = count('start a');
  fleet.hub.send('bus', idOf('a'));
  await until('a is woken', () => count('start a') > first || undefined);
  await loader.closeAll();
});

it('a tenant that works stays open, and a wake-up reaches its service', async () => {
  busy.add('a');
  await subscribe('a');
  const { courier } = await start();
  await until('a runs', () => courier.phases()['running'] === 1 || undefined);
  const wakes = count('wake a');
  fleet.hub.send('bus', idOf('a'));
  await until('it is woken', () => count('wake a') > wakes || undefined);
  expect(count('start a')).toBe(1);
});

it('a tenant that is stopped by a person is no longer served', async () => {
  busy.add('a');
  await subscribe('a');
  const { courier } = await start();
  await until('a runs', () => courier.phases()['running'] === 1 || undefined);
  await setDesired(fleet.control, idOf('a'), 'off');
  fleet.hub.send('tenant', idOf('a'));
  await until('a has stopped', has('stop a'));
  await until('a is forgotten', () => Object.keys(courier.phases()).length === 0 || undefined);
  expect(steps.at(-1)).toBe('stop a');
});

it('a service gives back its errands before the connections of a changed tenant close, and starts again', async () => {
  busy.add('a');
  await subscribe('a');
  await start();
  await until('a runs', has('wake a'));
  fleet.hub.send('tenant', idOf('a'), true);
  // `stop` is noted only after its statement has succeeded
  await until('it has stopped', has('stop a'));
  await until('it runs again', () => count('start a') === 2 || undefined);
});

it('a tenant whose service fails is retried, and does not disturb another', async () => {
  failing.add('a');
  busy.add('b');
  await subscribe('a', 'b');
  const { courier } = await start();
  await until('b runs', has('wake b'));
  failing.clear();
  await until('a is retried', has('start a'));
  expect(courier.phases()['running']).toBeGreaterThanOrEqual(1);
  expect(count('start b')).toBe(1);
});

it('a silent courier whose process is gone is noticed by another of its machine, and its services are woken and told', async () => {
  busy.add('a');
  await subscribe('a');
  const [gone, elsewhere, cloned] = [newId(), newId(), newId()];
  const { pid } = spawnSync(process.execPath, ['-e', '']);
  for (const [id, where, beat] of [
    [gone, machine, '-4 s'],
    [elsewhere, 'another machine', '-4 s'],
    // on another machine of the same name
    [cloned, machine, '1 hour'],
  ] as const)
    await fleet.control.db.exec(sql`
      insert into courier (id, machine, pid, version, started_at, beat_at)
      values (${id}, ${where}, ${pid}, '1', now(), now() + ${beat}::interval)`);
  await start();
  await until('a is told', () => lostAt.get('a')?.().includes(gone) || undefined);
  expect(lostAt.get('a')?.()).not.toContain(elsewhere);
  expect(lostAt.get('a')?.()).not.toContain(cloned);
  await fleet.control.db.exec(sql`delete from courier where id = ${cloned}`);
  const { couriers: alive } = await readCourierStanding(fleet.control.db);
  expect(alive.map(({ id }) => id)).not.toContain(gone);
  await fleet.control.db.exec(sql`delete from courier where id in (${gone}, ${elsewhere})`);
});

it('couriers count each other, and their counters and standings are in their rows', async () => {
  await subscribe('a');
  busy.add('a');
  const { courier, telemetry } = await start();
  await start();
  expect((await readCourierStanding(fleet.control.db)).couriers).toHaveLength(2);
  const directory = makeDirectory(fleet.control.db, idOf('a'), systemTime, 30_000);
  expect((await directory.couriers?.(new Date(0)))?.map(({ id }) => id)).toContain(courier.id);
  expect(await directory.couriers?.(new Date(Date.now() + 60_000))).toEqual([]);
  batchSent.emit(telemetry, {
    tenant: idOf('a'),
    subscriber: 's',
    status: '2xx',
    events: 3,
    ms: 12,
    latencyMs: [5, 40, 2_000],
  });
  const tally = await until('the tally is written', async () => {
    const rows = await courierTallies(fleet.control.db);
    const own = rows.find(({ id }) => id === courier.id)?.tally;
    return own?.tenants[idOf('a')] && own.standings[idOf('a')] ? own : undefined;
  });
  expect(tally.tenants[idOf('a')]).toMatchObject({ delivered: 3, deliveries: { '2xx': 1 } });
  expect(tally.tenants[idOf('a')]?.latency.seconds).toBeCloseTo(2.045);
  expect(tally.standings[idOf('a')]).toMatchObject({ errands: { main: { ready: 2 } }, subscribers: [{ queued: 7 }] });
  await courier.stop();
  expect((await readCourierStanding(fleet.control.db)).couriers).toHaveLength(1);
});
