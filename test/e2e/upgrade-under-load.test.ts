/**
 * A tenant is upgraded while all roles work on it: triggers fire, workers claim, report and ship logs, users read, publishers
 * publish and a courier delivers. It begins at release 0.1.0, whose engine has no bus, and is upgraded to this release and to the
 * next. No run is lost, and the server's log proves that no statement of the old engine came after the migration got its lock.
 * A failed upgrade keeps the old engine, and leaves nothing of the new one.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RoleProcess } from '../chaos/role-process.ts';
import { CallFailed, makeClient } from '../../src/http/client.ts';
import { engineVersion } from '../../src/engine/engine.ts';
import { basic } from '../harness/bus-client.ts';
import { faultsOfLoad, startBusLoad } from '../harness/bus-load.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { engineBuild, failingMigration, removeEngineBuilds } from '../harness/engine-builds.ts';
import { TestInstallation } from '../harness/installation.ts';
import { type Endpoints, millrace } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const former = '0.1.0';
const formerEngine = fileURLToPath(new URL('../fixtures/engine-0.1.0.tgz', import.meta.url));
const next = '0.2.1-test.1';
const broken = '0.2.2-test.1';
const name = 'busy';

let world: TestInstallation;
let worker: RoleProcess;
let courier: RoleProcess;
let receiver: BusReceiver;
beforeAll(async () => {
  receiver = await makeBusReceiver();
  world = await TestInstallation.start({
    launchers: 1,
    env: { MILLRACE_BUS_ALLOW_HTTP: 'true', MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8' },
    settings: { log_statement: 'all', log_line_prefix: '@%d|%a|%x|' },
  });
  const better = { version: next, migrations: ['create table kept (id integer)'] };
  const worse = { version: broken, migrations: [...better.migrations, failingMigration] };
  for (const engine of [formerEngine, await engineBuild(better), await engineBuild(worse)])
    expect(await millrace(['engine', 'add', engine], { env: world.env })).toMatchObject({ code: 0 });
  await world.started('default');
  await world.call('POST /api/tenants', { body: { name, version: former } });
  await world.started(name);
  worker = new RoleProcess({ name: 'worker', args: ['worker'], env: world.env, mayEnd: () => false });
  courier = new RoleProcess({ name: 'courier', args: ['courier'], env: world.env, mayEnd: () => false });
}, 240_000);
afterAll(async () => {
  await Promise.all([worker?.release(), courier?.release()]);
  await world?.close();
  await receiver?.close();
  await removeEngineBuilds();
});

const busy = () =>
  makeClient<Endpoints>({
    base: `${world.url}/t/${name}`,
    headers: { authorization: `Bearer ${world.env['MILLRACE_KEY']}` },
  });

/** Every second a parent with five children that write something, and a join. */
async function work(): Promise<void> {
  const children = Array.from({ length: 5 }, (_, i) => `c${i}`);
  const start = new Date(Math.ceil(Date.now() / 1_000) * 1_000).toISOString();
  await busy()('POST /api/projects', { body: { name: 'p' } });
  await busy()('POST /api/jobs', {
    body: JSON.stringify({
      project: 'p',
      name: 'fan',
      description: '',
      triggers: [{ name: 'tick', start, period: '1s' }],
      tasks: [
        { name: 'parent', depends: ['trigger/tick'] },
        ...children.map((child) => ({ name: child, depends: ['task/parent'], process: { command: ['echo', child] } })),
        { name: 'join', depends: children.map((child) => `task/${child}`) },
      ],
    }),
    headers: { 'content-type': 'application/json' },
  });
}

/** Users who read all the time. Returns how often they were asked to retry later, and any other failure. */
async function look(signal: AbortSignal): Promise<{ asked: number; later: number; worse: string[] }> {
  const seen = { asked: 0, later: 0, worse: [] as string[] };
  while (!signal.aborted) {
    seen.asked++;
    await busy()('GET /api/runs', { query: { limit: 20 } }).catch((error: unknown) => {
      if (error instanceof CallFailed && error.status === 503) seen.later++;
      else seen.worse.push(String(error));
    });
    await sleep(20);
  }
  return seen;
}

async function serverLog(): Promise<{ application: string; xid: string; text: string }[]> {
  const text = await readFile(join(world.home, 'postgres.log'), 'utf8');
  return text.split('\n@').flatMap((line) => {
    const [database, application = '', xid = '', ...rest] = line.replace(/^@/, '').split('|');
    return database === name ? [{ application, xid, text: rest.join('|') }] : [];
  });
}

/** Instants whose join has run, and how often each. */
async function joins(): Promise<Map<string, number>> {
  return world.in(name, async (client) => {
    const { rows } = await client.query<{ instant: string; n: number }>(`
      select (run.instant at time zone 'UTC')::text as instant, count(*)::integer as n
        from millrace.run join millrace.task on task.id = run.task_id
       where task.name = 'join' and run.state = 'success' group by 1`);
    return new Map(rows.map(({ instant, n }) => [instant, n]));
  });
}

const upgrade = (to: string) => world.call('POST /api/tenants/{name}/upgrade', { params: { name }, body: { to } });

/** A client key of a tenant. With a callback's path, it is subscribed to `load`. */
async function busKey(tenant: string, path?: string): Promise<string> {
  const { key } = await world.call('POST /api/keys', { body: { name: 'shop', role: 'client', tenant } });
  if (path === undefined) return key;
  const body = JSON.stringify({ topics: ['load'], callback: `${receiver.url}${path}`, max: 7, timeout: 0 });
  const answer = await post(tenant, key, 'subscription', body);
  expect(answer.status).toBe(204);
  return key;
}

const post = (tenant: string, key: string, path: string, body: string): Promise<Response> =>
  fetch(`${world.url}/t/${tenant}/bus/${path}`, { method: 'POST', headers: { authorization: basic(key) }, body });

const batchesAt = (path: string) => receiver.received.filter((batch) => batch.path === path);

const event = JSON.stringify({ type: 'update', url: 'https://shop.example/1' });

describe('two engine versions at once', () => {
  it('publishing to a tenant whose engine has no bus is answered with 503, and another tenant delivers', async () => {
    const without = await post(name, await busKey(name), 'topics/load', event);
    expect([without.status, await without.json()]).toEqual([503, expect.objectContaining({ code: 'no_bus' })]);
    const key = await busKey('default', '/beside');
    const posted = await post('default', key, 'topics/load', event);
    expect(posted.status).toBe(200);
    const { id } = (await posted.json()) as { id: string };
    expect(await receiver.acceptedEvents(1, '/beside')).toEqual([Number(id)]);
  });
});

describe('upgrade under load', () => {
  it('a tenant of 0.1.0 is upgraded to this release with runs in flight, and loses none', async () => {
    await work();
    await until('it is busy', async () => (await joins()).size >= 3);
    const over = new AbortController();
    const looking = look(over.signal);
    const { from, to, migrations } = await upgrade(engineVersion);
    expect({ from, to }).toEqual({ from: former, to: engineVersion });
    expect(migrations).toContain('functions');
    await world.started(name);
    const at = (await joins()).size;
    await until('it goes on', async () => (await joins()).size >= at + 3);
    over.abort();
    expect((await looking).worse).toEqual([]);
  }, 90_000);

  it('an upgrade loses no run and no event, and the old engine sends no statement after the lock was granted', async () => {
    const load = startBusLoad({ base: `${world.url}/t/${name}`, key: await busKey(name, '/busy'), topic: 'load' });
    await receiver.acceptedEvents(50, '/busy');
    const over = new AbortController();
    const looking = look(over.signal);
    const before = (await serverLog()).length;
    const { from, to, migrations } = await upgrade(next);
    expect({ from, to }).toEqual({ from: engineVersion, to: next });
    expect(migrations.length).toBeGreaterThan(0);
    await world.started(name);
    const at = (await joins()).size;
    await until('it goes on', async () => (await joins()).size >= at + 3);
    over.abort();
    const seen = await looking;
    expect(seen.worse).toEqual([]);
    expect(seen.asked).toBeGreaterThan(seen.later);
    await load.more(50);
    await load.stop();
    expect(await faultsOfLoad(load, () => batchesAt('/busy'))).toEqual([]);
    // every statement is logged when it begins: the first one of the migration itself comes after the grant
    const log = await serverLog();
    const granted = log.findIndex(({ text }, i) => i >= before && text.includes('select min(relname) as found'));
    expect(granted).toBeGreaterThan(before);
    // a connection that waited for the lock since before gives up: its error repeats the statement that asked for the lock
    const isEcho = (text: string): boolean => /^(ERROR|STATEMENT): /.test(text);
    const old = log
      .slice(granted)
      .filter(({ application, text }) => application.includes(` ${engineVersion} `) && !isEcho(text));
    expect(old).toEqual([]);
    for (const role of ['host', 'courier', 'api']) {
      const isOf = (version: string) => (line: { application: string }) =>
        line.application.startsWith(`millrace ${role} `) && line.application.includes(` ${version} `);
      expect(log.slice(0, granted).some(isOf(engineVersion)), role).toBe(true);
      expect(log.slice(granted).some(isOf(next)), role).toBe(true);
    }
    expect(await busy()('GET /api/status')).toMatchObject({ build: next });
  }, 90_000);

  it('a failed upgrade leaves the old engine running, and nothing of the new one', async () => {
    const at = (await joins()).size;
    const before = (await serverLog()).length;
    await expect(upgrade(broken)).rejects.toThrow(/division by zero/);
    await world.started(name);
    await until('it goes on', async () => (await joins()).size >= at + 3);
    const log = (await serverLog()).slice(before);
    expect(log.filter(({ application }) => application.includes(` ${broken} `))).toEqual([]);
    expect(await busy()('GET /api/status')).toMatchObject({ build: next });
  }, 60_000);

  it('in the end every instant from the first to now has run once and completely', async () => {
    const [first] = [...(await joins()).keys()].toSorted();
    const count = Math.floor((Date.now() - Date.parse(`${first}Z`)) / 1_000);
    const instants = Array.from({ length: count }, (_, i) => new Date(Date.parse(`${first}Z`) + i * 1_000));
    const done = await until('all of them have run', async () => {
      const ran = await joins();
      return instants.every((instant) => ran.has(textOf(instant))) ? ran : undefined;
    });
    expect(count).toBeGreaterThan(6);
    expect(new Set(done.values())).toEqual(new Set([1]));
  }, 60_000);
});

/** As the query above writes it. */
function textOf(instant: Date): string {
  return instant.toISOString().slice(0, 19).replace('T', ' ');
}
