import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal } from '../../../test/harness/expected.ts';
import { claim, eventTypes, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, taskOf, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const make = (name: string) => api.call('POST /api/projects', { body: { name } });

async function makeJob(project: string, name: string, tasks: readonly object[] = [{ name: 'only' }]): Promise<string> {
  const body = JSON.stringify({ project, name, description: '', triggers: [], tasks });
  return (await api.call('POST /api/jobs', { body })).id;
}

describe('creating and changing projects', () => {
  it('a project is created, returned, and recorded as an event', async () => {
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    const body = { name: 'made', description: 'why', config: { a: 1 } };
    const made = await api.call('POST /api/projects', { body });
    expect(made).toEqual({ id: made.id, name: 'made', description: 'why' });
    expect(await eventTypes(api.db, before)).toEqual(['project.created']);
    expect(api.heard).toEqual([
      `invalidate ${JSON.stringify({ tenant: api.ctx.tenant.id, kind: 'project', id: made.id })}`,
      'events',
    ]);
    expect(await api.call('GET /api/projects/{id}/config', { params: { id: made.id } })).toEqual({ a: 1 });
  });

  it('a project without uuid is changed by name, and keeps its config if none is given', async () => {
    const first = await api.call('PUT /api/projects', { body: { name: 'again', config: { kept: true } } });
    const before = await newestPosition(api.db);
    const second = await api.call('PUT /api/projects', { body: { name: 'again', description: 'new' } });
    expect(second).toEqual({ id: first.id, name: 'again', description: 'new' });
    expect(await eventTypes(api.db, before)).toEqual(['project.changed']);
    expect(await api.call('GET /api/projects/{id}/config', { params: { id: first.id } })).toEqual({ kept: true });
  });

  it('an unchanged project appends no event', async () => {
    await make('same');
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    await make('same');
    expect(await eventTypes(api.db, before)).toEqual([]);
    expect(api.heard).toEqual([]);
  });

  it('a project is renamed by its uuid, in upper or lower case', async () => {
    const uuid = newId();
    await api.call('PUT /api/projects', { body: { uuid, name: 'old name' } });
    const renamed = await api.call('PUT /api/projects', { body: { uuid: uuid.toUpperCase(), name: 'new name' } });
    expect(renamed).toMatchObject({ id: uuid, name: 'new name' });
    await expect(api.call('GET /api/projects', { query: { name: 'old name' } })).rejects.toEqual(refusal(404));
  });

  it('a name that another project has is a conflict', async () => {
    await make('taken');
    const clash = { body: { uuid: newId(), name: 'taken' } };
    await expect(api.call('POST /api/projects', clash)).rejects.toMatchObject({
      status: 409,
      problem: { code: 'conflict' },
    });
  });

  it('concurrent requests create one project', async () => {
    const made = await Promise.all(Array.from({ length: 8 }, () => make('race')));
    expect(new Set(made.map((project) => project.id)).size).toBe(1);
  });

  it('bad input is rejected with its path', async () => {
    const body = { name: 'a/b', colour: 'red' };
    const answer = api.fetch('POST', '/api/projects', { caller: keyOf('operator'), body: JSON.stringify(body) });
    const problem: unknown = await (await answer).json();
    expect(problem).toMatchObject({ status: 400, code: 'bad_request' });
    expect(JSON.stringify(problem)).toContain('body.name');
    expect(JSON.stringify(problem)).toContain('colour');
  });

  it('a deleted project is revived by its uuid', async () => {
    const uuid = newId();
    await api.call('PUT /api/projects', { body: { uuid, name: 'phoenix' } });
    await api.call('DELETE /api/projects/{id}', { params: { id: uuid } });
    const before = await newestPosition(api.db);
    await api.call('PUT /api/projects', { body: { uuid, name: 'phoenix' } });
    expect(await eventTypes(api.db, before)).toEqual(['project.created']);
    expect(await api.call('GET /api/projects', { query: { name: 'phoenix' } })).toMatchObject({ id: uuid });
  });
});

describe('reading projects', () => {
  it('projects are listed by name, a page at a time', async () => {
    for (const name of ['z1', 'z3', 'z2']) await make(name);
    const page = await api.call('GET /api/projects', { query: { after: 'z1', limit: 1 } });
    expect(page).toEqual([expect.objectContaining({ name: 'z2' })]);
  });

  it('a project is found by name, and an unknown name is not found', async () => {
    const made = await make('sought');
    expect(await api.call('GET /api/projects', { query: { name: 'sought' } })).toEqual(made);
    await expect(api.call('GET /api/projects', { query: { name: 'nowhere' } })).rejects.toEqual(refusal(404));
  });

  it('a project counts runs that are running, waiting, or ended in the last hour', async () => {
    const { id } = await make('counted');
    const job = await makeJob('counted', 'job');
    const [task] = await api.call('GET /api/jobs/{id}/tasks', { params: { id: job } });
    const activate = (instant: string) =>
      api.call('PUT /api/tasks/{id}/tokens/{instant}', {
        params: { id: task?.task_id ?? '', instant },
        body: { priority: 'high' },
      });
    for (const [day, state] of [
      ['01', 'success'],
      ['02', 'timeout'],
      ['03', 'error'],
      ['04', 'failure'],
    ]) {
      await activate(`2026-01-${day}T00:00:00Z`);
      await runAll(api, state);
    }
    await activate('2026-01-05T00:00:00Z');
    await claim(api);
    await activate('2026-01-06T00:00:00Z');
    const counts = {
      succeeded_tasks_last_hour: 1,
      failed_tasks_last_hour: 2,
      error_tasks_last_hour: 1,
      waiting_tasks: 1,
    };
    expect(await api.call('GET /api/projects/{id}', { params: { id } })).toMatchObject({
      ...counts,
      num_jobs: 1,
      running_tasks: 1,
    });
    expect(await api.call('GET /api/jobs/{id}', { params: { id: job } })).toMatchObject({ ...counts, active_tasks: 1 });
    expect(await api.call('GET /api/projects/{id}/jobs', { params: { id } })).toEqual([
      {
        job_id: job,
        name: 'job',
        description: '',
        paused: false,
        success: 1,
        failure: 2,
        error: 1,
        running: 1,
        waiting: 1,
      },
    ]);
    api.advance(3_700_000);
    expect(await api.call('GET /api/projects/{id}', { params: { id } })).toMatchObject({
      succeeded_tasks_last_hour: 0,
    });
  });

  it('jobs of a project are listed by name, a page at a time, or found by name', async () => {
    const { id } = await make('with jobs');
    for (const name of ['b', 'a', 'c']) await makeJob('with jobs', name);
    const jobs = (query: object) => api.call('GET /api/projects/{id}/jobs', { params: { id }, query });
    expect((await jobs({ limit: 2 })).map((job) => job.name)).toEqual(['a', 'b']);
    expect((await jobs({ after: 'b' })).map((job) => job.name)).toEqual(['c']);
    expect((await jobs({ name: 'b' })).map((job) => job.name)).toEqual(['b']);
  });

  it('an unknown project is not found', async () => {
    const params = { id: newId() };
    await expect(api.call('GET /api/projects/{id}', { params })).rejects.toEqual(refusal(404));
    await expect(api.call('GET /api/projects/{id}/jobs', { params })).rejects.toEqual(refusal(404));
    await expect(api.call('GET /api/projects/{id}/config', { params })).rejects.toEqual(refusal(404));
    await expect(api.call('DELETE /api/projects/{id}', { params })).rejects.toEqual(refusal(404));
  });

  it('a task may read only the configuration of its own project', async () => {
    const [mine, other] = [await make('mine'), await make('not mine')];
    const job = await makeJob('mine', 'job');
    await api.call('POST /api/jobs/{id}/run', { params: { id: job } });
    const run = (await claim(api)).at(-1)?.id ?? '';
    const read = (id: string, caller = taskOf(run)) =>
      api.as(caller)('GET /int-api/projects/{id}/config', { params: { id } });
    expect(await read(mine.id)).toEqual({});
    await expect(read(other.id)).rejects.toEqual(refusal(403));
    await expect(read(mine.id, taskOf(run, 2))).rejects.toEqual(refusal(403));
    expect(await read(other.id, keyOf('root'))).toEqual({});
  });
});

describe('deleting a project', () => {
  it('deleting a project deletes its jobs, and frees both names', async () => {
    const { id } = await make('doomed');
    const job = await makeJob('doomed', 'job');
    const before = await newestPosition(api.db);
    api.heard.splice(0);
    await api.call('DELETE /api/projects/{id}', { params: { id } });
    expect(await eventTypes(api.db, before)).toEqual(['project.deleted', 'job.deleted']);
    expect(api.heard).toContain(`triggers ["${job}"]`);
    await expect(api.call('GET /api/jobs/{id}', { params: { id: job } })).rejects.toEqual(refusal(404));
    await expect(api.call('DELETE /api/projects/{id}', { params: { id } })).rejects.toEqual(refusal(404));
    expect((await make('doomed')).id).not.toBe(id);
  });

  it('deleting a project deletes its stash', async () => {
    const { id } = await make('secretive');
    const job = await makeJob('secretive', 'job');
    await api.call('PUT /api/projects/{id}/stash/{key}', { params: { id, key: 'k' }, body: Buffer.from('v') });
    await api.call('DELETE /api/projects/{id}', { params: { id } });
    const left = await api.db.one<{ n: number }>(sql`
      select (select count(*) from project_stash where project_id = ${id})
           + (select count(*) from job_stash where job_id = ${job}) as n`);
    expect(left.n).toBe(0);
  });
});
