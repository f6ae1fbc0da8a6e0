import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { refusal, textWith } from '../../../test/harness/expected.ts';
import { applyDocument, makeProject } from '../../../test/harness/pipeline.ts';
import { claim, finish, fire, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { until } from '../../../test/harness/until.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { makeScheduler } from '../../scheduler/scheduler.ts';

let api: TenantApi;
let name: string;
beforeAll(async () => {
  api = await makeTenantApi();
});
beforeEach(() => {
  name = `pool ${newId()}`;
});
/** Deletes all jobs and ends their runs, so that no test claims runs of another. */
afterEach(async () => {
  const jobs = await api.db.rows<{ id: string }>(sql`select id from job where deleted_at is null`);
  for (const { id } of jobs) await api.call('DELETE /api/jobs/{id}', { params: { id } });
  await finish(api, await claim(api, 1_000), 'cancelled');
});
afterAll(() => api.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const set = (places: number) => api.call('PUT /api/pools/{name}', { params: { name }, body: { places } });
const remove = () => api.call('DELETE /api/pools/{name}', { params: { name } });
const look = async () =>
  (await api.call('GET /api/pools', { query: { limit: 1000 } })).items.find((p) => p.name === name);
const users = (parts: object = {}): Promise<MadeJob> =>
  makeJob(api, {
    triggers: [{ name: 't', start: day(1), period: '1d', end: day(10), catchup: 'none' }],
    tasks: [{ name: 'a', depends: ['trigger/t'], pool: name }],
    ...parts,
  });

describe('pools', () => {
  it('a pool is created, changed and returned with its used places and waiting runs', async () => {
    const body = JSON.stringify({ places: 2 });
    const path = `/api/pools/${encodeURIComponent(name)}`;
    const put = () => api.fetch('PUT', path, { body, caller: keyOf('operator') });
    const [first, again] = [await put(), await put()];
    expect([first.status, await first.json()]).toEqual([201, { name, places: 2, used: 0, waiting: 0 }]);
    expect(again.status).toBe(200);
    const job = await users();
    for (const n of [1, 2, 3, 4, 5]) await fire(api, job.triggers['t'], day(n));
    expect(await look()).toEqual({ name, places: 2, used: 2, waiting: 3 });
    expect(await set(1)).toEqual({ name, places: 1, used: 2, waiting: 3 });
    const runs = await claim(api);
    expect(runs).toHaveLength(2);
    await finish(api, runs.slice(0, 1));
    expect(await claim(api)).toEqual([]);
    await finish(api, runs.slice(1));
    expect(await claim(api)).toHaveLength(1);
    const logged = await api.db.rows(sql`
      select type, body::json ->> 'places' as places, actor from event where body::json ->> 'name' = ${name} order by seq`);
    expect(logged).toEqual([
      { type: 'pool.created', places: '2', actor: 'key:operator' },
      { type: 'pool.changed', places: '1', actor: 'key:operator' },
    ]);
  });

  it('a raised pool admits waiting runs at once, and a pool without places admits none', async () => {
    await set(0);
    const job = await users();
    const scheduler = makeScheduler(api.ctx);
    await scheduler.start();
    try {
      for (const n of [1, 2, 3]) await fire(api, job.triggers['t'], day(n));
      expect(await claim(api)).toEqual([]);
      expect(await look()).toMatchObject({ places: 0, used: 0, waiting: 3 });
      api.heard.splice(0);
      await set(2);
      expect(api.heard.slice(0, 2)).toEqual(['tokens', 'events']);
      // sooner than the sweep of five seconds
      await until('two pass', async () => (await look())?.used === 2 || undefined, 4_000);
      expect(await claim(api)).toHaveLength(2);
    } finally {
      await scheduler.stop();
    }
  });

  it('pools are listed by name, page by page, also for viewers', async () => {
    const call = api.as(keyOf('viewer'));
    const names = [1, 2, 3].map((n) => `~ ${n} ${name}`);
    for (const each of names) await api.call('PUT /api/pools/{name}', { params: { name: each }, body: { places: 1 } });
    const first = await call('GET /api/pools', { query: { cursor: '~', limit: 2 } });
    expect([first.items.map((p) => p.name), first.next]).toEqual([names.slice(0, 2), names[1]]);
    const second = await call('GET /api/pools', { query: { cursor: names[1], limit: 2 } });
    expect([second.items.map((p) => p.name), second.next]).toEqual([names.slice(2), null]);
    const put = call('PUT /api/pools/{name}', { params: { name }, body: { places: 1 } });
    await expect(put).rejects.toEqual(refusal(403));
  });

  it('a pool is deleted only if no task names it', async () => {
    const project = `p ${newId()}`;
    await set(3);
    await users({ project });
    await users({ project, name: 'other' });
    await expect(remove()).rejects.toMatchObject({
      status: 409,
      message: textWith(`${project}/job/task/a and 1 more`),
    });
    await users({ project, tasks: [{ name: 'b', pool: name }] });
    const { id } = await users({ project, name: 'other' });
    await api.call('DELETE /api/jobs/{id}', { params: { id } });
    await expect(remove()).rejects.toMatchObject({ status: 409, message: textWith(`${project}/job/task/b`) });
    await users({ project, tasks: [{ name: 'b' }] });
    await remove();
    expect(await look()).toBeUndefined();
    await expect(remove()).rejects.toEqual(refusal(404));
    await users({ project });
    expect(await look()).toMatchObject({ places: 1 });
  });

  it('a pool is not deleted while a job that names it is being applied', async () => {
    await set(3);
    const project = `p ${newId()}`;
    await makeProject(api.db, project);
    const document = { project, name: 'job', tasks: [{ name: 'a', pool: name }] };
    const removal = await api.db.transaction(async (tx) => {
      await applyDocument(tx, document);
      const refused = remove().catch((error: unknown) => error);
      await until('the removal waits', async () => {
        const waiting = await api.db.rows(sql`
          select 1 from pg_locks where relation = 'gate'::regclass and mode = 'ShareRowExclusiveLock' and not granted`);
        return waiting.length > 0 || undefined;
      });
      return { refused };
    });
    expect(await removal.refused).toEqual(refusal(409));
    expect(await look()).toMatchObject({ places: 3 });
  });

  it('bad input is rejected with its path', async () => {
    for (const places of [-1, 1.5, 'many']) {
      const body = JSON.stringify({ places });
      const answer = await api.fetch('PUT', '/api/pools/p', { body, caller: keyOf('operator') });
      expect([answer.status, await answer.json()]).toMatchObject([400, { faults: [{ path: 'body.places' }] }]);
    }
    const bad = await api.fetch('PUT', '/api/pools/a%40b', { body: '{"places":1}', caller: keyOf('operator') });
    expect([bad.status, await bad.json()]).toMatchObject([400, { faults: [{ path: 'path.name' }] }]);
  });
});
