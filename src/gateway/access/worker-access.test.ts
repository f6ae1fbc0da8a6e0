/** A worker's key gives no access to other workers, other tenants or other runs. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet, type TestTenant } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { type ClaimedRun, claimAnswer, definitionsAnswer, secretsAnswer } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { makeDirectory } from '../../control/directory.ts';

let fleet: Fleet;
let a: TestTenant;
let b: TestTenant;
let gateway: TestGateway;

beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  [a, b] = fleet.tenants as [TestTenant, TestTenant];
  gateway = makeTestGateway(fleet);
  const sealed = gateway.secrets.encrypt(Buffer.from('value'));
  for (const tenant of fleet.tenants) {
    const db = await tenant.db();
    await db.exec(sql`insert into global_stash (name, data) values ('key', ${sealed}), ('other', ${sealed})`);
  }
});
afterAll(() => fleet.close());
beforeEach(() => {
  gateway = makeTestGateway(fleet);
});
afterEach(async () => {
  for (const tenant of fleet.tenants) await (await tenant.db()).exec(sql`delete from live`);
});

interface TestWorker {
  readonly worker: string;
  readonly incarnation: number;
  readonly key: string;
}

async function makeWorker(tenant: string | null = null, key?: string): Promise<TestWorker> {
  return { worker: newId(), incarnation: 1, key: key ?? (await gateway.key('worker', tenant)) };
}

interface Answered {
  readonly status: number;
  readonly body: unknown;
}

async function send(path: string, { key, ...identity }: TestWorker, body: object): Promise<Answered> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await gateway.fetch('POST', `/internal/${path}`, headers, { ...identity, ...body });
  return { status: answer.status, body: await answer.json() };
}

function sendHeartbeat(worker: TestWorker, holds: readonly object[] = []): Promise<Answered> {
  const self = { name: 'box', addr: '', version: '1', places: 8, runtimes: ['process'], queues: ['default'] };
  return send('heartbeat', worker, { ...self, holds, seen: {} });
}

async function claim(worker: TestWorker, waitMs = 5_000): Promise<ClaimedRun[]> {
  const wish = { free: 4, runtimes: ['process'], queues: ['default'], wait_ms: waitMs, seen: {} };
  return claimAnswer.parse((await send('claim', worker, wish)).body).runs;
}

/** A run that this worker holds, whose task names the stash entry `key`. */
async function hold(worker: TestWorker, tenant: TestTenant): Promise<ClaimedRun> {
  await tenant.readyWithSecret();
  const [run] = await claim(worker);
  if (run === undefined) throw new Error('nothing was claimed');
  return run;
}

const bare = ({ tenant, run, lease }: ClaimedRun): object => ({ tenant, run, lease });
const keyOf = ({ tenant, task, version }: ClaimedRun): object => ({ tenant, task, version });
const reportOf = (run: ClaimedRun, state: string): object => ({
  ...bare(run),
  state,
  reason: null,
  exit_code: 0,
  started_at: null,
});
const chunkOf = (run: ClaimedRun): object => ({
  ...bare(run),
  number: 0,
  stream: 'out',
  at: new Date().toISOString(),
  data: 'eA==',
});
const refused = { status: 403, body: { code: 'worker_refused' } };
const forbidden = { status: 403, body: { code: 'forbidden' } };

describe('worker ids', () => {
  it('a worker id belongs to the key that first used it', async () => {
    const owner = await makeWorker();
    expect((await sendHeartbeat(owner)).status).toBe(200);
    const run = await hold(owner, a);
    const thief = { ...owner, key: await gateway.key('worker', null) };
    expect(await sendHeartbeat(thief)).toMatchObject(refused);
    expect(await send('secrets', thief, { ...bare(run), names: ['key'] })).toMatchObject(refused);
    expect(await send('definitions', thief, { items: [keyOf(run)] })).toMatchObject(refused);
    expect(await send('logs', thief, { chunks: [] })).toMatchObject(refused);
    expect(await send('report', thief, { reports: [] })).toMatchObject(refused);
    const wish = { free: 1, runtimes: ['process'], queues: ['default'], wait_ms: 0, seen: {} };
    expect(await send('claim', thief, wish)).toMatchObject(refused);
  });

  it('a worker id belongs to one key if two use it first at the same time', async () => {
    const keys = await Promise.all(Array.from({ length: 6 }, () => gateway.key('worker', null)));
    const worker = newId();
    const wish = { free: 1, runtimes: ['process'], queues: ['default'], wait_ms: 0, seen: {} };
    const rivals = keys.map((key) => ({ worker, incarnation: 1, key }));
    const statuses = await Promise.all(rivals.map(async (rival) => (await send('claim', rival, wish)).status));
    expect(statuses.toSorted((x, y) => x - y)).toEqual([200, 403, 403, 403, 403, 403]);
    const beats = await Promise.all(rivals.map(async (rival) => (await sendHeartbeat(rival)).status));
    expect(beats).toEqual(statuses);
  });

  it('a worker id is free again once its key is revoked', async () => {
    const owner = await makeWorker();
    await sendHeartbeat(owner);
    await fleet.control.db.exec(sql`
      update key set revoked_at = now() where id = (select key_id from worker where id = ${owner.worker})`);
    expect((await sendHeartbeat({ ...owner, key: await gateway.key('worker', null) })).status).toBe(200);
  });

  it('an incarnation far in the future is rejected, and the worker id stays usable', async () => {
    const owner = await makeWorker();
    expect(await sendHeartbeat({ ...owner, incarnation: 2 ** 53 - 1 })).toMatchObject(refused);
    expect(await sendHeartbeat({ ...owner, incarnation: fleet.time.now() + 2 * 86_400_000 })).toMatchObject(refused);
    expect((await sendHeartbeat({ ...owner, incarnation: Number.NaN })).status).toBe(400);
    expect((await sendHeartbeat({ ...owner, incarnation: fleet.time.now() })).status).toBe(200);
  });

  it('a worker id is refused to a process that a later one has replaced, so that it takes a new id', async () => {
    const owner = await makeWorker();
    await sendHeartbeat({ ...owner, incarnation: 2 });
    expect(await sendHeartbeat(owner)).toMatchObject(refused);
  });

  it('every request must name its worker id', async () => {
    const { key } = await makeWorker();
    const headers = { authorization: `Bearer ${key}` };
    const answer = await gateway.fetch('POST', '/internal/definitions', headers, { items: [] });
    expect([answer.status, await answer.json()]).toMatchObject([
      403,
      { detail: expect.stringMatching(/upgrade it$/) as string },
    ]);
  });
});

describe('workers', () => {
  it('a worker reads the definitions and secrets of the runs that it holds', async () => {
    const worker = await makeWorker();
    const run = await hold(worker, a);
    const definitions = definitionsAnswer.parse((await send('definitions', worker, { items: [keyOf(run)] })).body);
    expect(definitions.definitions).toMatchObject([{ task: run.task, runtime: { kind: 'process' } }]);
    const secrets = secretsAnswer.parse((await send('secrets', worker, { ...bare(run), names: ['key'] })).body);
    expect(secrets.values).toEqual({ key: Buffer.from('value').toString('base64') });
  });

  it('a worker that holds a run reads no other secret of its tenant', async () => {
    const worker = await makeWorker();
    const run = await hold(worker, a);
    expect(await send('secrets', worker, { ...bare(run), names: ['key', 'other'] })).toMatchObject(forbidden);
  });

  it('a worker reads nothing of runs that another worker holds, even with the same key', async () => {
    const owner = await makeWorker();
    const run = await hold(owner, a);
    const sibling = await makeWorker(null, owner.key);
    expect(await send('secrets', sibling, { ...bare(run), names: ['key'] })).toMatchObject(forbidden);
    expect((await send('definitions', sibling, { items: [keyOf(run)] })).body).toEqual({ definitions: [], failed: [] });
  });

  it('a worker cannot report, log or renew a run that another worker holds, even with the same key', async () => {
    const owner = await makeWorker();
    const run = await hold(owner, a);
    const db = await a.db();
    const before = await db.one(sql`select * from live where id = ${run.run}`);
    for (const thief of [await makeWorker(), await makeWorker('a'), await makeWorker(null, owner.key)]) {
      for (const state of ['success', 'returned']) await send('report', thief, { reports: [reportOf(run, state)] });
      await send('logs', thief, { chunks: [chunkOf(run)] });
      expect((await sendHeartbeat(thief, [bare(run)])).body).toMatchObject({ lost: [bare(run)] });
    }
    expect(await db.rows(sql`select * from live where id = ${run.run}`)).toEqual([before]);
    expect(await db.rows(sql`select * from log where run_id = ${run.run}`)).toEqual([]);
    await send('logs', owner, { chunks: [chunkOf(run)] });
    await send('report', owner, { reports: [reportOf(run, 'success')] });
    expect(await db.rows(sql`select 1 from log where run_id = ${run.run}`)).toHaveLength(1);
    expect(await db.rows(sql`select state from run where id = ${run.run}`)).toEqual([{ state: 'success' }]);
  });

  it("a worker reads by Waterwheel's calls only tasks and projects of runs that workers of its key hold", async () => {
    const owner = await makeWorker();
    const run = await hold(owner, a);
    const { project } = await (await a.db()).one<{ project: string }>(sql`
      select job.project_id as project from task join job on job.id = task.job_id where task.id = ${run.task}`);
    const read = async (key: string): Promise<number[]> => {
      const paths = [`/t/a/int-api/tasks/${run.task}`, `/t/a/int-api/projects/${project}/config`];
      const headers = { authorization: `Bearer ${key}` };
      const answers = await Promise.all(paths.map((path) => gateway.fetch('GET', path, headers)));
      return answers.map(({ status }) => status);
    };
    expect(await read(owner.key)).toEqual([200, 200]);
    for (const tenant of [null, 'a', 'b']) expect(await read(await gateway.key('worker', tenant))).toEqual([403, 403]);
    await send('report', owner, { reports: [reportOf(run, 'success')] });
    expect(await read(owner.key)).toEqual([403, 403]);
  });

  it('a worker must call with a key, not with a session', async () => {
    const worker = await makeWorker();
    const cookie = await gateway.session(worker.key);
    const headers = { cookie, origin: 'http://127.0.0.1' };
    const answer = await gateway.fetch('POST', '/internal/logs', headers, {
      worker: newId(),
      incarnation: 1,
      chunks: [],
    });
    expect(answer.status).toBe(403);
  });
});

describe('worker keys of one tenant', () => {
  it('a worker key of one tenant claims runs of that tenant only', async () => {
    const worker = await makeWorker('b');
    await Promise.all([a.readyWithSecret(), b.readyWithSecret()]);
    const runs = await claim(worker);
    expect(runs.map((run) => run.tenant)).toEqual([b.row.id]);
    expect(await claim(worker, 50)).toEqual([]);
    expect((await claim(await makeWorker('a'))).map((run) => run.tenant)).toEqual([a.row.id]);
  });

  it('a worker key of one tenant neither writes nor reads data of other tenants', async () => {
    const run = await hold(await makeWorker(), a);
    const worker = await makeWorker('b');
    expect(await sendHeartbeat(worker, [bare(run)])).toMatchObject(forbidden);
    expect(await send('report', worker, { reports: [reportOf(run, 'success')] })).toMatchObject(forbidden);
    expect(await send('logs', worker, { chunks: [chunkOf(run)] })).toMatchObject(forbidden);
    expect(await send('definitions', worker, { items: [keyOf(run)] })).toMatchObject(forbidden);
    expect(await send('secrets', worker, { ...bare(run), names: ['key'] })).toMatchObject(forbidden);
  });

  it('a worker key of one tenant does not see changes of other tenants, but counts them', async () => {
    const worker = await makeWorker('b');
    const { epoch, newest } = (await sendHeartbeat(worker)).body as { epoch: string; newest: number };
    const ofB = { tenant: b.row.id, kind: 'task', id: newId() } as const;
    const ofA = { tenant: a.row.id, kind: 'task', id: newId() } as const;
    for (const change of [ofA, ofB]) gateway.context.signals.invalidate(change);
    const wish = { free: 0, runtimes: ['process'], queues: ['default'], wait_ms: 0, seen: { [epoch]: newest } };
    const { invalidate } = claimAnswer.parse((await send('claim', worker, wish)).body);
    expect(invalidate).toHaveLength(2);
    expect(invalidate[1]).toEqual(ofB);
    expect(JSON.stringify(invalidate)).not.toContain(a.row.id);
  });

  it('a worker with the key of one tenant is invisible to other tenants', async () => {
    const worker = await makeWorker('b');
    await sendHeartbeat(worker);
    const seen = async (tenant: TestTenant): Promise<boolean> => {
      const directory = makeDirectory(fleet.control.db, tenant.row.id, fleet.time, 30_000);
      return (await directory.workers(new Date(0))).some(({ id }) => id === worker.worker);
    };
    expect([await seen(a), await seen(b)]).toEqual([false, true]);
  });
});

it('a key of one tenant cannot add a worker of Waterwheel, which all tenants would see', async () => {
  const beatOf = {
    uuid: newId(),
    addr: 'x',
    version: '1',
    running_tasks: 0,
    total_tasks: 99,
    last_seen_datetime: new Date(),
  };
  const post = async (tenant: string | null): Promise<number> => {
    const headers = { authorization: `Bearer ${await gateway.key('worker', tenant)}` };
    return (await gateway.fetch('POST', '/int-api/heartbeat', headers, beatOf)).status;
  };
  expect([await post('a'), await post(null)]).toEqual([403, 200]);
});

it('a worker of Waterwheel belongs to the key that first sent its heartbeat, and is not a worker of ours', async () => {
  const uuid = newId();
  const headers = { authorization: `Bearer ${await gateway.key('worker', null)}` };
  const others = { authorization: `Bearer ${await gateway.key('worker', null)}` };
  const self = { addr: 'x', version: '1', running_tasks: 0, total_tasks: 9, last_seen_datetime: new Date() };
  const post = async (how: Record<string, string>, id: string): Promise<number> =>
    (await gateway.fetch('POST', '/int-api/heartbeat', how, { ...self, uuid: id })).status;
  expect([await post(headers, uuid), await post(headers, uuid), await post(others, uuid)]).toEqual([200, 200, 409]);
  const ours = await makeWorker();
  await sendHeartbeat(ours);
  expect(await post(headers, ours.worker)).toBe(409);
});
