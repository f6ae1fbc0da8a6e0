import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyNumber, refusal, textWith } from '../../../test/harness/expected.ts';
import { activate, fire, makeJob, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const day = (n: number): string => `2026-01-0${n}T00:00:00.000Z`;

describe('finding jobs', () => {
  it('a job is found by project and name', async () => {
    const { id } = await makeJob(api, { project: 'finding', name: 'sought' });
    const job = await api.call('GET /api/jobs', { query: { project: 'finding', name: 'sought' } });
    expect(job).toMatchObject({ id, name: 'sought', description: '', paused: false });
    expect(job).not.toHaveProperty('items');
  });

  it('a request with only project or only name is rejected', async () => {
    for (const [query, path] of [
      ['project=finding', 'query.name'],
      ['name=sought', 'query.project'],
    ]) {
      const answer = await api.fetch('GET', `/api/jobs?${query}`, { caller: keyOf('viewer') });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ faults: [{ path }], detail: textWith('both') });
    }
  });

  it('an unknown project or name is not found', async () => {
    const find = (project: string, name: string) => api.call('GET /api/jobs', { query: { project, name } });
    await expect(find('nowhere', 'sought')).rejects.toEqual(refusal(404));
    await expect(find('finding', 'nothing')).rejects.toEqual(refusal(404));
  });

  it('all jobs are listed by project and name, a page at a time', async () => {
    for (const [project, name] of [
      ['zz', 'a'],
      ['zy', 'b'],
      ['zz', 'b'],
    ] as const)
      await makeJob(api, { project, name });
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await api.call('GET /api/jobs', {
        query: { limit: 1, ...(cursor === undefined ? {} : { cursor }) },
      });
      if (!('items' in page)) throw new Error('not a page');
      expect(page.items).toHaveLength(1);
      seen.push(...page.items.map((job) => `${job.project}/${job.name}`));
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(seen).toEqual([...seen].sort());
    expect(seen.slice(-3)).toEqual(['zy/b', 'zz/a', 'zz/b']);
  });

  it('an invalid cursor is rejected', async () => {
    const answer = await api.fetch('GET', '/api/jobs?cursor=%21', { caller: keyOf('viewer') });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ faults: [{ path: 'query.cursor' }] });
  });
});

describe('single jobs', () => {
  it('a job is returned with its document', async () => {
    const { id } = await makeJob(api, { project: 'documents', name: 'shown' });
    const job = await api.call('GET /api/jobs/{id}', { params: { id } });
    expect(job).toMatchObject({ id, project: 'documents', name: 'shown', version: 1, active_tasks: 0 });
    expect(JSON.parse(job.raw_definition)).toMatchObject({ name: 'shown', tasks: [{ name: 'only' }] });
  });

  it('a long description is cut in the list, and complete in the job', async () => {
    const description = 'x'.repeat(50_000);
    const { id } = await makeJob(api, { project: 'described', name: 'long', description });
    const page = await api.call('GET /api/jobs', { query: { limit: 1000 } });
    const listed = 'items' in page ? page.items.find((item) => item.id === id) : undefined;
    expect(listed?.description).toHaveLength(1_000);
    const overview = await api.call('GET /api/jobs/overview', { query: { q: 'described' } });
    expect(overview.items[0]?.description).toHaveLength(1_000);
    expect((await api.call('GET /api/jobs/{id}', { params: { id } })).description).toBe(description);
  });

  it('every version of a job is kept, newest first', async () => {
    const { id } = await makeJob(api, { project: 'versions' });
    for (const name of ['two', 'three']) await makeJob(api, { project: 'versions', tasks: [{ name }] });
    const versions = (query: object) => api.call('GET /api/jobs/{id}/versions', { params: { id }, query });
    const first = await versions({ limit: 2 });
    expect(first.items.map((item) => item.version)).toEqual([3, 2]);
    expect(first.items[0]).toEqual({ version: 3, actor: 'key:operator', at: expect.any(String) as string });
    const one = (version: number) => api.call('GET /api/jobs/{id}/versions/{version}', { params: { id, version } });
    expect(await one(3)).toMatchObject({
      version: 3,
      actor: 'key:operator',
      definition: { tasks: [{ name: 'three' }] },
    });
    expect(await one(1)).toMatchObject({ version: 1 });
    await expect(one(4)).rejects.toMatchObject({ status: 404 });
    const rest = await versions({ before: first.next });
    expect(rest).toMatchObject({ items: [{ version: 1 }], next: null });
  });

  it('tasks and triggers are listed, except removed ones', async () => {
    const start = day(1);
    const triggers = [
      { name: 'hourly', start, period: '1h 30m', offset: '-3m', catchup: 'none' },
      { name: 'nightly', start, end: day(9), cron: '0 3 * * *', timezone: 'Europe/Berlin' },
    ];
    const { id } = await makeJob(api, { project: 'parts', triggers, tasks: [{ name: 'b' }, { name: 'a' }] });
    const seen = await api.call('GET /api/jobs/{id}/triggers', { params: { id } });
    expect(seen[0]).toMatchObject({
      trigger_name: 'hourly',
      period: 5400,
      trigger_offset: -180,
      catchup: 'none',
      cron: null,
    });
    expect(seen[1]).toMatchObject({
      period: null,
      cron: '0 3 * * *',
      end_datetime: day(9),
      trigger_offset: null,
      timezone: 'Europe/Berlin',
    });
    await makeJob(api, { project: 'parts', triggers: triggers.slice(0, 1), tasks: [{ name: 'a' }] });
    expect(await api.call('GET /api/jobs/{id}/triggers', { params: { id } })).toHaveLength(1);
    expect((await api.call('GET /api/jobs/{id}/tasks', { params: { id } })).map((task) => task.name)).toEqual(['a']);
  });

  it('tasks are listed with the state at their latest instant, however old', async () => {
    const { id, tasks } = await makeJob(api, {
      tasks: [
        { name: 'busy' },
        { name: 'done' },
        { name: 'joined', depends: ['task/done'], threshold: 2 },
        { name: 'new' },
      ],
    });
    for (const n of [1, 2, 3]) await activate(api, tasks['busy'], day(n));
    await activate(api, tasks['done'], day(1));
    await runAll(api, 'failure');
    await activate(api, tasks['done'], day(2));
    await runAll(api);
    await activate(api, tasks['busy'], day(2));
    expect(await api.call('GET /api/jobs/{id}/tasks', { params: { id } })).toMatchObject([
      { name: 'busy', latest_trigger_datetime: day(2), latest_state: 'active' },
      { name: 'done', latest_trigger_datetime: day(2), latest_state: 'success' },
      { name: 'joined', latest_trigger_datetime: day(2), latest_state: 'waiting' },
      { name: 'new', latest_trigger_datetime: null, latest_state: null },
    ]);
    await runAll(api);
  });

  it('an unknown job is not found at any endpoint', async () => {
    const params = { id: newId() };
    const keys = [
      '',
      '/versions',
      '/tasks',
      '/paused',
      '/graph',
      '/duration',
      '/tokens',
      '/tokens-overview',
      '/triggers',
    ];
    for (const key of keys) {
      const answer = await api.fetch('GET', `/api/jobs/${params.id}${key}`, { caller: keyOf('viewer') });
      expect([key, answer.status]).toEqual([key, 404]);
    }
  });

  it('a bad id or time is rejected with its path', async () => {
    const wrong = [
      ['/api/jobs/nonsense', 'path.id'],
      [`/api/jobs/${newId()}/tokens/yesterday`, 'path.instant'],
      [`/api/jobs/${newId()}/tokens?limit=0`, 'query.limit'],
      [`/api/jobs/${newId()}/tokens?state=sleepy`, 'query.state'],
      [`/api/jobs/${newId()}/graph?trigger_datetime=2026`, 'query.trigger_datetime'],
    ];
    for (const [path = '', fault] of wrong) {
      const answer = await api.fetch('GET', path, { caller: keyOf('viewer') });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ faults: [{ path: fault }] });
    }
  });
});

describe('graph of a job', () => {
  it('the graph leaves out some of thousands of dependent tasks, and says so', async () => {
    const hub = await makeJob(api, { project: 'graph', name: 'hub', tasks: [{ name: 'source' }] });
    const followers = async (name: string, count: number): Promise<void> => {
      const tasks = Array.from({ length: count }, (_, i) => ({ name: `t${i}`, depends: ['graph/hub/task/source'] }));
      await makeJob(api, { project: 'graph', name, tasks });
    };
    const read = () => api.call('GET /api/jobs/{id}/graph', { params: { id: hub.id } });
    await followers('many', 2_000);
    expect(await read()).toMatchObject({ complete: true, nodes: { length: 2_001 }, edges: { length: 2_000 } });
    await followers('more', 1);
    expect(await read()).toMatchObject({ complete: false, nodes: { length: 2_001 }, edges: { length: 2_000 } });
  });

  it('the graph has tasks, triggers and edges, also those of other jobs on either side', async () => {
    const up = await makeJob(api, { project: 'graph', name: 'up', tasks: [{ name: 'source' }] });
    const tasks = [
      { name: 'a', depends: ['trigger/t', 'up/task/source'] },
      { name: 'b', depends: ['task/a'], depends_failure: ['task/a'] },
      { name: 'c', depends_done: ['task/b'] },
    ];
    const triggers = [{ name: 't', start: day(1), period: '1d' }];
    const mid = await makeJob(api, { project: 'graph', name: 'mid', triggers, tasks });
    const down = await makeJob(api, {
      project: 'graph',
      name: 'down',
      tasks: [{ name: 'sink', depends: ['mid/task/c'] }],
    });
    const { nodes, edges, jobs } = await api.call('GET /api/jobs/{id}/graph', { params: { id: mid.id } });
    expect(nodes.map((node) => [node.kind, node.name, node.job_id, node.state])).toEqual([
      ['trigger', 't', mid.id, null],
      ['task', 'a', mid.id, null],
      ['task', 'b', mid.id, null],
      ['task', 'c', mid.id, null],
      ['task', 'sink', down.id, null],
      ['task', 'source', up.id, null],
    ]);
    expect(jobs).toEqual([
      { id: down.id, name: 'down', project: 'graph' },
      { id: up.id, name: 'up', project: 'graph' },
    ]);
    const names = new Map(nodes.map((node) => [node.id, node.name]));
    expect(edges.map((edge) => `${names.get(edge.from)} ${edge.kind} ${names.get(edge.to)}`).sort()).toEqual([
      'a failure b',
      'a success b',
      'b done c',
      'c success sink',
      'source success a',
      't trigger a',
    ]);
  });

  it('the graph has the states of a given instant', async () => {
    const job = await makeJob(api, { tasks: [{ name: 'a' }, { name: 'b', depends: ['task/a'] }] });
    await activate(api, job.tasks['a'], day(1));
    await runAll(api);
    const query = { trigger_datetime: day(1) };
    const { nodes } = await api.call('GET /api/jobs/{id}/graph', { params: { id: job.id }, query });
    expect(nodes.map((node) => node.state)).toEqual(['success', 'active']);
    await runAll(api);
  });
});

describe('durations', () => {
  it('durations are those of the longest run per task and instant, of the latest instants', async () => {
    const job = await makeJob(api, {
      triggers: [{ name: 't', start: day(1), period: '1d' }],
      tasks: [{ name: 'a', depends: ['trigger/t'] }],
    });
    for (const n of [1, 2, 3]) {
      await fire(api, job.triggers['t'], day(n));
      await runAll(api);
    }
    const read = (query: object) => api.call('GET /api/jobs/{id}/duration', { params: { id: job.id }, query });
    const latest = await read({ limit: 2 });
    expect(latest.duration.map((cell) => cell.trigger_datetime)).toEqual([day(3), day(2)]);
    expect(latest.duration[0]).toMatchObject({ task_name: 'a', duration: anyNumber });
    expect((await read({ before: day(2) })).duration.map((cell) => cell.trigger_datetime)).toEqual([day(1)]);
  });
});

describe('checking a document', () => {
  const check = (document: object) => api.call('POST /api/jobs/check', { body: JSON.stringify(document) });

  it('a check reports what applying would do, and writes nothing', async () => {
    const { id } = await makeJob(api, { project: 'checking', name: 'there' });
    const { faults, applied } = await check({ project: 'checking', name: 'there', tasks: [{ name: 'another' }] });
    expect(faults).toEqual([]);
    expect(applied).toMatchObject({ id, outcome: 'changed', dry_run: true, outlook: { triggers: [] } });
    expect(await api.call('GET /api/jobs/{id}', { params: { id } })).toMatchObject({ version: 1 });
  });

  it('a check returns the faults of a document, of its references and of its name', async () => {
    const tasks = [{ name: 'a', depends: ['task/none'] }];
    const broken = await check({ project: 'checking', name: 'broken', tasks, more: 1 });
    expect(broken.applied).toBeNull();
    expect(broken.faults.map(({ path }) => path).sort()).toEqual(['more', 'tasks[0].depends[0]']);
    expect(await check({ project: 'nowhere', name: 'x', tasks: [{ name: 'a' }] })).toMatchObject({
      faults: [{ path: 'project' }],
    });
    await makeJob(api, { project: 'checking', name: 'taken' });
    const taken = await check({ uuid: newId(), project: 'checking', name: 'taken', tasks: [{ name: 'a' }] });
    expect(taken).toMatchObject({ applied: null, faults: [{ path: '', message: textWith('is called taken') }] });
  });

  it('only operators may check, and only JSON and YAML are accepted', async () => {
    const as = (role: 'viewer' | 'operator', type: string) =>
      api.fetch('POST', '/api/jobs/check', { caller: keyOf(role), body: '{}', headers: { 'content-type': type } });
    expect((await as('viewer', 'application/json')).status).toBe(403);
    expect((await as('operator', 'text/plain')).status).toBe(415);
  });
});
