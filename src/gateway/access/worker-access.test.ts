/** What one worker's key opens of other workers, other tenants and other runs: nothing. */
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

async function say(path: string, { key, ...identity }: TestWorker, body: object): Promise<Answered> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await gateway.fetch('POST', `/internal/${path}`, headers, { ...identity, ...body });
  return { status: answer.status, body: await answer.json() };
}

function beat(worker: TestWorker, holds: readonly object[] = []): Promise<Answered> {
  const self = { name: 'box', addr: '', version: '1', places: 8, runtimes: ['process'], queues: ['default'] };
  return say('heartbeat', worker, { ...self, holds, seen: {} });
}

async function claim(worker: TestWorker, waitMs = 5_000): Promise<ClaimedRun[]> {
  const wish = { free: 4, runtimes: ['process'], queues: ['default'], wait_ms: waitMs, seen: {} };
  return claimAnswer.parse((await say('claim', worker, wish)).body).runs;
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

describe('a worker id', () => {
  it('belongs to the key that it was first used with', async () => {
    const owner = await makeWorker();
    expect((await beat(owner)).status).toBe(200);
    const run = await hold(owner, a);
    const thief = { ...owner, key: await gateway.key('worker', null) };
    expect(await beat(thief)).toMatchObject(refused);
    expect(await say('secrets', thief, { ...bare(run), names: ['key'] })).toMatchObject(refused);
    expect(await say('definitions', thief, { items: [keyOf(run)] })).toMatchObject(refused);
    expect(await say('logs', thief, { chunks: [] })).toMatchObject(refused);
    expect(await say('report', thief, { reports: [] })).toMatchObject(refused);
    const wish = { free: 1, runtimes: ['process'], queues: ['default'], wait_ms: 0, seen: {} };
    expect(await say('claim', thief, wish)).toMatchObject(refused);
  });

  it('belongs to one key when two use it first at the same time', async () => {
    const keys = await Promise.all(Array.from({ length: 6 }, () => gateway.key('worker', null)));
    const worker = newId();
    const wish = { free: 1, runtimes: ['process'], queues: ['default'], wait_ms: 0, seen: {} };
    const rivals = keys.map((key) => ({ worker, incarnation: 1, key }));
    const statuses = await Promise.all(rivals.map(async (rival) => (await say('claim', rival, wish)).status));
    expect(statuses.toSorted((x, y) => x - y)).toEqual([200, 403, 403, 403, 403, 403]);
    const beats = await Promise.all(rivals.map(async (rival) => (await beat(rival)).status));
    expect(beats).toEqual(statuses);
  });

  it('is free again once that key is revoked', async () => {
    const owner = await makeWorker();
    await beat(owner);
    await fleet.control.db.exec(sql`
      update key set revoked_at = now() where id = (select key_id from worker where id = ${owner.worker})`);
    expect((await beat({ ...owner, key: await gateway.key('worker', null) })).status).toBe(200);
  });

  it('is not spoiled by an incarnation from far ahead', async () => {
    const owner = await makeWorker();
    expect(await beat({ ...owner, incarnation: 2 ** 53 - 1 })).toMatchObject(refused);
    expect(await beat({ ...owner, incarnation: fleet.time.now() + 2 * 86_400_000 })).toMatchObject(refused);
    expect((await beat({ ...owner, incarnation: Number.NaN })).status).toBe(400);
    expect((await beat({ ...owner, incarnation: fleet.time.now() })).status).toBe(200);
  });

  it('of a process that another has followed is refused, so that it takes a new one', async () => {
    const owner = await makeWorker();
    await beat({ ...owner, incarnation: 2 });
    expect(await beat(owner)).toMatchObject(refused);
  });

  it('must be named with every request', async () => {
    const { key } = await makeWorker();
    const headers = { authorization: `Bearer ${key}` };
    const answer = await gateway.fetch('POST', '/internal/definitions', headers, { items: [] });
    expect([answer.status, await answer.json()]).toMatchObject([
      403,
      { detail: expect.stringMatching(/upgrade it$/) as string },
    ]);
  });
});

describe('a worker', () => {
  it('reads the definitions and secrets of the runs that it holds', async () => {
    const worker = await makeWorker();
    const run = await hold(worker, a);
    const definitions = definitionsAnswer.parse((await say('definitions', worker, { items: [keyOf(run)] })).body);
    expect(definitions.definitions).toMatchObject([{ task: run.task, runtime: { kind: 'process' } }]);
    const secrets = secretsAnswer.parse((await say('secrets', worker, { ...bare(run), names: ['key'] })).body);
    expect(secrets.values).toEqual({ key: Buffer.from('value').toString('base64') });
  });

  it('reads no other secret of its tenant, though it holds a run', async () => {
    const worker = await makeWorker();
    const run = await hold(worker, a);
    expect(await say('secrets', worker, { ...bare(run), names: ['key', 'other'] })).toMatchObject(forbidden);
  });

  it('reads nothing of runs that another worker holds, whatever key that has', async () => {
    const owner = await makeWorker();
    const run = await hold(owner, a);
    const sibling = await makeWorker(null, owner.key);
    expect(await say('secrets', sibling, { ...bare(run), names: ['key'] })).toMatchObject(forbidden);
    expect((await say('definitions', sibling, { items: [keyOf(run)] })).body).toEqual({ definitions: [], failed: [] });
  });

  it('does not report, log or renew a run that another worker holds, whatever key that has', async () => {
    const owner = await makeWorker();
    const run = await hold(owner, a);
    const db = await a.db();
    const before = await db.one(sql`select * from live where id = ${run.run}`);
    for (const thief of [await makeWorker(), await makeWorker('a'), await makeWorker(null, owner.key)]) {
      for (const state of ['success', 'returned']) await say('report', thief, { reports: [reportOf(run, state)] });
      await say('logs', thief, { chunks: [chunkOf(run)] });
      expect((await beat(thief, [bare(run)])).body).toMatchObject({ lost: [bare(run)] });
    }
    expect(await db.rows(sql`select * from live where id = ${run.run}`)).toEqual([before]);
    expect(await db.rows(sql`select * from log where run_id = ${run.run}`)).toEqual([]);
    await say('logs', owner, { chunks: [chunkOf(run)] });
    await say('report', owner, { reports: [reportOf(run, 'success')] });
    expect(await db.rows(sql`select 1 from log where run_id = ${run.run}`)).toHaveLength(1);
    expect(await db.rows(sql`select state from run where id = ${run.run}`)).toEqual([{ state: 'success' }]);
  });

  it("reads by Waterwheel's calls only tasks and projects of runs that workers of its key hold", async () => {
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
    await say('report', owner, { reports: [reportOf(run, 'success')] });
    expect(await read(owner.key)).toEqual([403, 403]);
  });

  it('calls with a key, not with a session', async () => {
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

describe('a worker key of one tenant', () => {
  it('brings runs of that tenant only', async () => {
    const worker = await makeWorker('b');
    await Promise.all([a.readyWithSecret(), b.readyWithSecret()]);
    const runs = await claim(worker);
    expect(runs.map((run) => run.tenant)).toEqual([b.row.id]);
    expect(await claim(worker, 50)).toEqual([]);
    expect((await claim(await makeWorker('a'))).map((run) => run.tenant)).toEqual([a.row.id]);
  });

  it('says and reads nothing of other tenants', async () => {
    const run = await hold(await makeWorker(), a);
    const worker = await makeWorker('b');
    expect(await beat(worker, [bare(run)])).toMatchObject(forbidden);
    expect(await say('report', worker, { reports: [reportOf(run, 'success')] })).toMatchObject(forbidden);
    expect(await say('logs', worker, { chunks: [chunkOf(run)] })).toMatchObject(forbidden);
    expect(await say('definitions', worker, { items: [keyOf(run)] })).toMatchObject(forbidden);
    expect(await say('secrets', worker, { ...bare(run), names: ['key'] })).toMatchObject(forbidden);
  });

  it('is not told what changes in other tenants, and counts it all the same', async () => {
    const worker = await makeWorker('b');
    const { epoch, newest } = (await beat(worker)).body as { epoch: string; newest: number };
    const ofB = { tenant: b.row.id, kind: 'task', id: newId() } as const;
    const ofA = { tenant: a.row.id, kind: 'task', id: newId() } as const;
    for (const change of [ofA, ofB]) gateway.context.signals.invalidate(change);
    const wish = { free: 0, runtimes: ['process'], queues: ['default'], wait_ms: 0, seen: { [epoch]: newest } };
    const { invalidate } = claimAnswer.parse((await say('claim', worker, wish)).body);
    expect(invalidate).toHaveLength(2);
    expect(invalidate[1]).toEqual(ofB);
    expect(JSON.stringify(invalidate)).not.toContain(a.row.id);
  });

  it('makes a worker that other tenants do not see', async () => {
    const worker = await makeWorker('b');
    await beat(worker);
    const seen = async (tenant: TestTenant): Promise<boolean> => {
      const directory = makeDirectory(fleet.control.db, tenant.row.id, fleet.time, 30_000);
      return (await directory.workers(new Date(0))).some(({ id }) => id === worker.worker);
    };
    expect([await seen(a), await seen(b)]).toEqual([false, true]);
  });
});

it('A key of one tenant does not add a worker of Waterwheel, which all tenants would see', async () => {
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

it('A worker of Waterwheel belongs to the key that first sent its heartbeat, and is no worker of ours', async () => {
  const uuid = newId();
  const headers = { authorization: `Bearer ${await gateway.key('worker', null)}` };
  const others = { authorization: `Bearer ${await gateway.key('worker', null)}` };
  const self = { addr: 'x', version: '1', running_tasks: 0, total_tasks: 9, last_seen_datetime: new Date() };
  const post = async (how: Record<string, string>, id: string): Promise<number> =>
    (await gateway.fetch('POST', '/int-api/heartbeat', how, { ...self, uuid: id })).status;
  expect([await post(headers, uuid), await post(headers, uuid), await post(others, uuid)]).toEqual([200, 200, 409]);
  const ours = await makeWorker();
  await beat(ours);
  expect(await post(headers, ours.worker)).toBe(409);
});
