/** Installations in which only the tenant `default` may run tasks on the machines of workers. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { aliveWorker, whyRun } from '../../../test/harness/explaining.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let shop: TenantApi;

beforeAll(async () => {
  shop = await makeTenantApi({ name: 'shop', localTasks: 'default' });
  await shop.call('PUT /api/projects', { body: { name: 'p' } });
});
afterAll(() => shop.close());

const document = (...tasks: object[]): string => JSON.stringify({ project: 'p', name: newId(), tasks });

it('a document with a process or function is rejected with each path and the setting', async () => {
  const process = { name: 'b', process: { command: ['true'] } };
  const called = { name: 'c', function: { name: 'f' } };
  const body = document({ name: 'a' }, process, called);
  const answer = await shop.fetch('POST', '/api/jobs', { caller: keyOf('operator'), body });
  const message = expect.stringContaining('MILLRACE_LOCAL_TASKS=default') as string;
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    {
      code: 'bad_document',
      faults: [
        { path: 'tasks[1].process', message },
        { path: 'tasks[2].function', message },
      ],
    },
  ]);
  const image = { name: 'd', docker: { image: 'i', args: [] } };
  expect((await shop.call('PUT /api/jobs', { body: document({ name: 'a' }, image) })).id).toBeDefined();
});

it('a run that was queued before is explained by the setting', async () => {
  aliveWorker(shop, { runtimes: ['none', 'process'] });
  const { id } = await shop.call('PUT /api/jobs', { body: document({ name: 'a' }) });
  const { runs } = await shop.call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
  const [run = ''] = runs;
  await shop.db.exec(sql`update live set lane = 'process:default' where id = ${run}`);
  const why = await whyRun(shop, run);
  expect(why.reasons[0]).toMatchObject({
    code: 'runtime_not_allowed',
    message: expect.stringContaining('MILLRACE_LOCAL_TASKS=default') as string,
  });
});

it('the tenant default, and installations without the setting, are not affected', async () => {
  for (const options of [{ localTasks: 'default' as const }, { name: 'shop' }]) {
    const api = await makeTenantApi(options);
    await api.call('PUT /api/projects', { body: { name: 'p' } });
    const body = document({ name: 'b', process: { command: ['true'] } });
    expect((await api.call('PUT /api/jobs', { body })).id).toBeDefined();
    await api.close();
  }
});
