/** The search: by words in names, the best first, and by id. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal } from '../../../test/harness/expected.ts';
import { activate, makeJob, type MadeJob, runAll } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';

let api: TenantApi;
let shop: MadeJob;
beforeAll(async () => {
  api = await makeTenantApi();
  shop = await makeJob(api, {
    project: 'Shop',
    name: 'Nightly load',
    triggers: [{ name: 'load time', start: '2026-01-01T00:00:00Z', period: '1d' }],
    tasks: [
      { name: 'load' },
      { name: 'preload' },
      { name: 'reload_all' },
      { name: 'Überprüfung' },
      { name: '100% (a+b)' },
    ],
  });
  await makeJob(api, { project: 'loading bay', name: 'trucks', tasks: [{ name: 'un-load' }, { name: 'count' }] });
  await makeJob(api, { project: 'Shop', name: 'count', tasks: [{ name: 'stock' }] });
});
afterAll(() => api.close());

const search = async (q: string, limit?: number) => {
  const { items } = await api.call('GET /api/search', { query: limit === undefined ? { q } : { q, limit } });
  return items;
};
const found = async (q: string, limit?: number) => (await search(q, limit)).map(({ kind, name }) => `${kind} ${name}`);

describe('search by words', () => {
  it('equal names come first, then names that begin with the text, then names with such a word, then the rest', async () => {
    expect(await found('load')).toEqual([
      'task load',
      'project loading bay',
      'trigger load time',
      'job Nightly load',
      'task un-load',
      'task preload',
      'task reload_all',
    ]);
    expect(await found('load', 2)).toEqual(['task load', 'project loading bay']);
  });

  it('among equal names, projects come before jobs, and jobs before tasks', async () => {
    expect(await found('count')).toEqual(['job count', 'task count']);
  });

  it('all words must occur, one of them in the name itself, the others in its job or project', async () => {
    expect(await found('nightly LOAD')).toEqual([
      'job Nightly load',
      'task load',
      'task preload',
      'task reload_all',
      'trigger load time',
    ]);
    expect(await found('shop stock')).toEqual(['task stock']);
    expect(await found('shop/nightly load')).toEqual(expect.arrayContaining(['job Nightly load']));
    expect((await found('shop/nightly load'))[0]).toBe('job Nightly load');
    expect(await found('shop absent')).toEqual([]);
  });

  it('letters of any script match, and special characters are literal', async () => {
    expect(await found('ÜBERPRÜF')).toEqual(['task Überprüfung']);
    expect(await found('%')).toEqual(['task 100% (a+b)']);
    expect(await found('(a+b)')).toEqual(['task 100% (a+b)']);
    expect(await found('reload_')).toEqual(['task reload_all']);
    for (const q of ['\\', '[', '(', '/', '* ?', "'"]) await expect(found(q)).resolves.toBeInstanceOf(Array);
  });

  it('a hit has its job and project', async () => {
    const [task] = await search('preload');
    expect(task).toMatchObject({
      id: shop.tasks['preload'],
      job: { id: shop.id, name: 'Nightly load', project: 'Shop' },
      project: { name: 'Shop' },
    });
    expect((await search('nightly'))[0]).toMatchObject({ kind: 'job', job: null, project: { name: 'Shop' } });
    expect((await search('shop'))[0]).toMatchObject({ kind: 'project', job: null, project: null });
  });

  it('deleted and removed objects are not found', async () => {
    const parts = (task: string) => ({ project: 'Passing', name: 'ephemeral', tasks: [{ name: task }] });
    await makeJob(api, parts('mayfly'));
    expect(await found('mayfly')).toEqual(['task mayfly']);
    const { id } = await makeJob(api, parts('other'));
    expect(await found('mayfly')).toEqual([]);
    await api.call('DELETE /api/jobs/{id}', { params: { id } });
    expect(await found('ephemeral')).toEqual([]);
    const [project] = await search('passing');
    await api.call('DELETE /api/projects/{id}', { params: { id: project?.id ?? '' } });
    expect(await found('passing')).toEqual([]);
  });

  it('very many matches do not hide the exact one', async () => {
    const many = Array.from({ length: 1_100 }, (_, n) => ({ name: `haul ${n}` }));
    for (let n = 0; n < 10; n++) await makeJob(api, { project: 'crowd', name: `crowd ${n}`, tasks: many });
    const tasks = [{ name: 'haul' }, { name: 'haul by rail' }];
    const meant = await makeJob(api, { project: 'billing', name: 'invoices', tasks });
    for (const q of ['billing/invoices/haul', 'billing haul', 'haul', 'HAUL invoices'])
      expect((await search(q))[0], q).toMatchObject({ kind: 'task', id: meant.tasks['haul'] });
    expect(await found('rail bill haul')).toEqual(['task haul by rail']);
    expect(await found('haul', 50)).toHaveLength(50);
  });

  it('an empty query is rejected', async () => {
    await expect(search('  ')).rejects.toEqual(refusal(400));
  });
});

describe('search by id', () => {
  it('a run, queued or ended, a job, task, trigger, project, backfill and worker are found by id', async () => {
    const run = await activate(api, shop.tasks['load'], '2026-01-01T00:00:00.000Z');
    expect(await search(run.toUpperCase())).toMatchObject([
      { kind: 'run', id: run, name: 'load', job: { id: shop.id } },
    ]);
    await runAll(api);
    expect(await found(run)).toEqual(['run load']);
    expect(await found(shop.id)).toEqual(['job Nightly load']);
    expect(await found(shop.tasks['load'] ?? '')).toEqual(['task load']);
    expect(await found(shop.triggers['load time'] ?? '')).toEqual(['trigger load time']);
    const [project] = await search('shop');
    expect(await found(project?.id ?? '')).toEqual(['project Shop']);
    const backfill = await api.call('POST /api/jobs/{id}/backfill', {
      params: { id: shop.id },
      body: { first: '2026-01-01T00:00:00Z', last: '2026-01-02T00:00:00Z', name: 'again' },
    });
    expect(await found('id' in backfill ? (backfill.id ?? '') : '')).toEqual(['backfill again']);
    const worker = newId();
    api.workers.push({
      id: worker,
      name: 'mill',
      addr: '',
      version: '',
      lastSeenAt: new Date(),
      running: 0,
      places: 1,
      runtimes: [],
      queues: [],
    });
    expect(await search(worker)).toEqual([{ kind: 'worker', id: worker, name: 'mill', job: null, project: null }]);
    expect(await search(newId())).toEqual([]);
  });
});
