import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { claim, makeJob, type MadeJob } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, taskOf, type TenantApi } from '../../../test/harness/tenant-api.ts';
import type { Caller } from '../../contract/roles.ts';
import { collectPages, pageIn } from '../../http/client.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { stashValuesFor } from './handlers.ts';

let api: TenantApi;
let job: MadeJob;
let project: string;
let task: Caller & { run: string };
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const instant = '2026-01-01T00:00:00.000Z';
const secret = Buffer.from([0, 255, 10, 13, 128, 7]);
const root = keyOf('root');

beforeEach(async () => {
  const name = `p ${newId()}`;
  const env = Object.fromEntries(['both', 'only-global', 'missing'].map((key, i) => [`V${i}`, { stash: key }]));
  job = await makeJob(api, { project: name, tasks: [{ name: 'only', process: { command: ['true'], env } }] });
  project = (await api.call('PUT /api/projects', { body: { name } })).id;
  await api.call('POST /api/jobs/{id}/run', { params: { id: job.id }, body: { instant } });
  const run = (await claim(api)).at(-1)?.id ?? '';
  task = { kind: 'task', tenantId: api.ctx.tenant.id, run, lease: 1 };
});

async function read(path: string, caller: Caller = task): Promise<Buffer | number> {
  const answer = await api.fetch('GET', path, { caller });
  return answer.ok ? Buffer.from(await answer.arrayBuffer()) : answer.status;
}

async function put(path: string, caller: Caller, body: string): Promise<number> {
  return (await api.fetch('PUT', path, { caller, body })).status;
}

describe('global stash', () => {
  it('tasks read the exact bytes that people wrote to the global stash', async () => {
    await api.call('PUT /api/stash/{key}', { params: { key: 'a key/with slash' }, body: secret });
    expect(await read('/int-api/stash/a%20key%2Fwith%20slash')).toEqual(secret);
    expect(await api.call('GET /api/stash')).toContain('a key/with slash');
    await put('/api/stash/a%20key%2Fwith%20slash', keyOf('operator'), 'new');
    expect(String(await read('/int-api/stash/a%20key%2Fwith%20slash'))).toBe('new');
    await api.call('DELETE /api/stash/{key}', { params: { key: 'a key/with slash' } });
    expect(await read('/int-api/stash/a%20key%2Fwith%20slash')).toBe(404);
  });

  it('the names of the global stash are listed a page at a time', async () => {
    for (const key of ['page a', 'page b', 'page c']) await put(`/api/stash/${key}`, keyOf('operator'), 'value');
    const wanted = (
      await collectPages(async (cursor) => pageIn(await api.call('GET /api/stash', { query: { limit: 1, cursor } })))
    ).filter((name) => name.startsWith('page'));
    expect(wanted).toEqual(['page a', 'page b', 'page c']);
  });

  it('values are stored encrypted', async () => {
    await put('/api/stash/sealed', keyOf('operator'), 'a very secret text');
    const { data } = await api.db.one<{ data: Buffer }>(sql`select data from global_stash where name = 'sealed'`);
    expect(data.includes('secret')).toBe(false);
  });

  it('writes and removals are recorded with actor and name, never with the value', async () => {
    await put('/api/stash/audited', keyOf('operator'), 'a very secret text');
    await api.call('DELETE /api/stash/{key}', { params: { key: 'audited' } });
    // the entry was already removed, so no event is appended
    await api.call('DELETE /api/stash/{key}', { params: { key: 'audited' } });
    const { items } = await api.call('GET /api/audit');
    const logged = items.filter(({ body }) => JSON.stringify(body).includes('audited'));
    expect(logged.map(({ type, actor, body }) => [type, actor, body])).toEqual([
      ['stash.removed', 'key:operator', { key: 'audited' }],
      ['stash.written', 'key:operator', { key: 'audited' }],
    ]);
  });

  it('an empty value is stored', async () => {
    await api.call('PUT /api/stash/{key}', { params: { key: 'empty' }, body: Buffer.alloc(0) });
    expect(await read('/int-api/stash/empty')).toEqual(Buffer.alloc(0));
  });

  it('only running tasks may read values', async () => {
    await put('/api/stash/shared', keyOf('operator'), 'x');
    expect(await read('/int-api/stash/shared', taskOf(task.run, 2))).toBe(403);
    expect(await read('/int-api/stash/shared', taskOf(newId()))).toBe(403);
    expect(await read('/int-api/stash/shared', keyOf('operator'))).toBe(403);
    expect(String(await read('/int-api/stash/shared', root))).toBe('x');
    expect(await put('/api/stash/shared', keyOf('viewer'), 'y')).toBe(403);
    expect(await put('/api/stash/shared', task, 'y')).toBe(403);
  });
});

describe('stash of a project', () => {
  it('only tasks of the project may read its stash', async () => {
    const other = await api.call('PUT /api/projects', { body: { name: `p ${newId()}` } });
    for (const id of [project, other.id]) {
      await api.call('PUT /api/projects/{id}/stash/{key}', { params: { id, key: 'k' }, body: secret });
    }
    expect(await api.call('GET /api/projects/{id}/stash', { params: { id: project } })).toEqual(['k']);
    expect(await read(`/int-api/projects/${project}/stash/k`)).toEqual(secret);
    expect(await read(`/int-api/projects/${project.toUpperCase()}/stash/k`)).toEqual(secret);
    expect(await read(`/int-api/projects/${other.id}/stash/k`)).toBe(403);
    expect(await read(`/int-api/projects/${project}/stash/none`)).toBe(404);
    await api.call('DELETE /api/projects/{id}/stash/{key}', { params: { id: project, key: 'k' } });
    expect(await api.call('GET /api/projects/{id}/stash', { params: { id: project } })).toEqual([]);
  });

  it('the stash of an unknown project is not found', async () => {
    const path = `/api/projects/${newId()}/stash`;
    expect(await read(path, keyOf('viewer'))).toBe(404);
    expect(await put(`${path}/k`, keyOf('operator'), 'x')).toBe(404);
  });
});

describe('stash of a job', () => {
  const path = (key: string, at = instant, id = job.id): string => `/int-api/jobs/${id}/stash/${at}/${key}`;

  it('tasks of the same instant write and read the stash of their job', async () => {
    expect(await put(path('k'), task, 'value')).toBe(201);
    expect(String(await read(path('k')))).toBe('value');
    expect(JSON.parse(String(await read(path(''))))).toEqual(['k']);
    expect(JSON.parse(String(await read(path(''), keyOf('viewer'))))).toEqual(['k']);
    expect((await api.fetch('DELETE', path('k'), { caller: keyOf('operator') })).status).toBe(204);
    expect(await read(path('k'))).toBe(404);
  });

  it('tasks of other instants or jobs, and ended runs, have no access to the stash of a job', async () => {
    const other = await makeJob(api);
    expect(await put(path('k', '2026-01-02T00:00:00Z'), task, 'x')).toBe(403);
    expect(await put(path('k', instant, other.id), task, 'x')).toBe(403);
    expect(await read(path('', instant, other.id))).toBe(403);
    await api.db.exec(sql`delete from live where id = ${task.run}`);
    expect(await put(path('k'), task, 'x')).toBe(403);
  });

  it('the stash of an unknown job is not found', async () => {
    expect(await read(path('', instant, newId()), keyOf('viewer'))).toBe(404);
  });
});

describe('stash values for workers', () => {
  it('a worker gets the entry of the project before the global one, and no missing entry', async () => {
    await put('/api/stash/both', keyOf('operator'), 'global');
    await put('/api/stash/only-global', keyOf('operator'), 'g');
    await put(`/api/projects/${project}/stash/both`, keyOf('operator'), 'project');
    const held = { tenant: api.ctx.tenant.id, run: task.run, lease: 1 };
    const values = await stashValuesFor(api.ctx, held, ['both', 'only-global', 'missing']);
    const plain = Object.entries(values).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]);
    expect(Object.fromEntries(plain)).toEqual({ both: 'project', 'only-global': 'g' });
    await expect(stashValuesFor(api.ctx, { ...held, lease: 7 }, ['both'])).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('a worker gets only entries that the task names', async () => {
    await put('/api/stash/other', keyOf('operator'), 'x');
    const held = { tenant: api.ctx.tenant.id, run: task.run, lease: 1 };
    const message = 'the task of this run does not name the stash entry other';
    await expect(stashValuesFor(api.ctx, held, ['both', 'other'])).rejects.toMatchObject({
      code: 'forbidden',
      message,
    });
  });

  it('values that are too large for the variables of a run are rejected without being read', async () => {
    const held = { tenant: api.ctx.tenant.id, run: task.run, lease: 1 };
    for (const name of ['both', 'only-global'])
      await put(`/api/projects/${project}/stash/${name}`, keyOf('operator'), 'x'.repeat(600_000));
    const reading = stashValuesFor(api.ctx, held, ['both', 'only-global', 'missing']);
    const code = 'stash_too_large';
    const message =
      'its variables take 1200066 bytes from the stash; at most 524288 are allowed. Let the task read large values from the API';
    await expect(reading).rejects.toMatchObject({ code, message });
  });

  it('only the worker that holds the run gets the values', async () => {
    const held = { tenant: api.ctx.tenant.id, run: task.run, lease: 1, worker: newId() };
    await expect(stashValuesFor(api.ctx, held, ['both'])).rejects.toMatchObject({ code: 'forbidden' });
  });
});
