/** A Waterwheel user moves in: its HTTP API, checked field by field against what its clients expect (reference §6). */
import { until } from '../harness/until.ts';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, bearer } from '../harness/ask.ts';
import { anyNumber, anyText, textWith } from '../harness/expected.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { complexDag, type RunRow, type Waterwheel, waterwheel } from '../harness/waterwheel.ts';

const project = { uuid: randomUUID(), name: 'test_project', description: 'a project for testing' };
const dag = randomUUID();
const day = '2022-01-01T00:00:00Z';

let product: Product;
let client: Waterwheel;
beforeAll(async () => {
  product = await startProduct();
  client = waterwheel(product);
  const created = await client.send('POST', '/api/projects', project);
  expect([created.status, created.json()]).toEqual([
    201,
    { id: project.uuid, name: project.name, description: project.description },
  ]);
  expect((await client.deploy(complexDag(dag))).status).toBe(201);
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

describe('project', () => {
  it('a project is found by name, listed in a bare array, and shown with its counts', async () => {
    const row = { id: project.uuid, name: project.name, description: project.description };
    expect(await client.read('/api/projects?name=test_project')).toEqual(row);
    expect((await client.get('/api/projects?name=nobody')).status).toBe(404);
    expect(await client.read('/api/projects')).toEqual([row]);
    expect(await client.read(`/api/projects/${project.uuid}`)).toEqual({
      ...row,
      num_jobs: anyNumber,
      running_tasks: anyNumber,
      waiting_tasks: anyNumber,
      failed_tasks_last_hour: anyNumber,
      succeeded_tasks_last_hour: anyNumber,
      error_tasks_last_hour: anyNumber,
    });
    expect((await client.get(`/api/projects/${randomUUID()}`)).status).toBe(404);
  });

  it('a project is changed by its uuid, and keeps its configuration unless a new one is given', async () => {
    const uuid = randomUUID();
    const put = (body: object): Promise<number> =>
      client.send('PUT', '/api/projects', body).then(({ status }) => status);
    expect(await put({ uuid, name: 'other', description: 'a', config: { kubernetes_pod_merge: { x: 1 } } })).toBe(201);
    expect(await put({ uuid, name: 'renamed', description: 'b' })).toBe(201);
    expect(await client.read('/api/projects?name=renamed')).toEqual({ id: uuid, name: 'renamed', description: 'b' });
    expect(await client.read(`/api/projects/${uuid}/config`)).toEqual({ kubernetes_pod_merge: { x: 1 } });
    expect(await put({ uuid: randomUUID(), name: 'renamed', description: 'c' })).toBe(409);
    expect((await client.send('DELETE', `/api/projects/${uuid}`)).status).toBe(204);
    expect((await client.send('DELETE', `/api/projects/${uuid}`)).status).toBe(404);
  });

  it('a project lists its jobs by name, a page at a time', async () => {
    const uuid = randomUUID();
    await client.send('PUT', '/api/projects', { uuid, name: 'many', description: '' });
    for (const name of ['c', 'a', 'b'])
      await client.deploy({ uuid: randomUUID(), project: 'many', name, description: '', triggers: [], tasks: [] });
    const names = async (query: string): Promise<string[]> =>
      (await client.read<{ name: string }[]>(`/api/projects/${uuid}/jobs${query}`)).map((job) => job.name);
    expect(await names('')).toEqual(['a', 'b', 'c']);
    expect(await names('?limit=2')).toEqual(['a', 'b']);
    expect(await names('?limit=2&after=b')).toEqual(['c']);
    expect(await client.read(`/api/projects/${uuid}/jobs?name=a`)).toEqual([
      {
        job_id: anyText,
        name: 'a',
        description: '',
        paused: false,
        success: 0,
        running: 0,
        failure: 0,
        waiting: 0,
        error: 0,
      },
    ]);
  });
});

describe('job with a complex graph', () => {
  let runs: RunRow[];
  beforeAll(async () => {
    runs = await client.ended(dag, day, ['z3_cleanup', 'stepE']);
  });

  it('a job follows success and failure edges, and joins when all tokens have arrived', () => {
    const states = Object.fromEntries(runs.map((row) => [row.name, row.state]));
    const succeeded = [
      'stepA',
      'stepB1',
      'stepB2',
      'stepB3',
      'stepB4',
      'stepB5',
      'stepC1',
      'stepC2',
      'stepE',
      'z1_failure',
      'z3_cleanup',
    ];
    expect(states).toEqual({ ...Object.fromEntries(succeeded.map((name) => [name, 'success'])), stepD: 'failure' });
    expect(runs).toHaveLength(succeeded.length + 1);
    expect(runs[0]).toEqual({
      task_id: anyText,
      task_run_id: anyText,
      name: 'stepA',
      trigger_datetime: '2022-01-01T00:00:00.000Z',
      attempt: 1,
      queued_datetime: anyText,
      started_datetime: anyText,
      finish_datetime: anyText,
      state: 'success',
      priority: 'backfill',
      worker_id: anyText,
    });
  });

  it('a job is found by project and name, and shown with its document and counts', async () => {
    const row = {
      id: dag,
      project_id: project.uuid,
      name: 'complex dag',
      description: 'a sample job with a complex dag',
      paused: false,
    };
    expect(await client.read('/api/jobs?project=test_project&name=complex%20dag')).toEqual(row);
    for (const query of ['?project=test_project', '?name=complex%20dag'])
      expect((await client.get(`/api/jobs${query}`)).status).toBe(400);
    const job = await client.read<{ raw_definition: string }>(`/api/jobs/${dag}`);
    expect(job).toMatchObject({
      ...row,
      project: 'test_project',
      active_tasks: 0,
      waiting_tasks: anyNumber,
      failed_tasks_last_hour: 1,
      succeeded_tasks_last_hour: 11,
      error_tasks_last_hour: 0,
    });
    expect(JSON.parse(job.raw_definition)).toMatchObject({
      uuid: dag,
      name: 'complex dag',
      tasks: expect.any(Array) as unknown,
    });
    const listed = await client.read<{ job_id: string }[]>(`/api/projects/${project.uuid}/jobs`);
    expect(listed.find((item) => item.job_id === dag)).toMatchObject({ success: 11, failure: 1, error: 0, running: 0 });
  });

  it('a job has a graph of nodes and edges, with states for an instant', async () => {
    type Graph = {
      nodes: { id: string; name: string; kind: string; state: string | null }[];
      edges: { from: string; to: string; kind: string }[];
    };
    const { nodes, edges } = await client.read<Graph>(`/api/jobs/${dag}/graph?trigger_datetime=${day}`);
    const named = (name: string) => nodes.find((node) => node.name === name);
    expect(named('daily')).toEqual({ id: anyText, kind: 'trigger', name: 'daily', job_id: dag, state: null });
    expect(named('stepD')).toEqual({ id: anyText, kind: 'task', name: 'stepD', job_id: dag, state: 'failure' });
    expect(named('z2_success')?.state).toBe('waiting');
    expect(edges).toContainEqual({ from: named('daily')?.id, to: named('stepA')?.id, kind: 'trigger' });
    expect(edges).toContainEqual({ from: named('stepD')?.id, to: named('z1_failure')?.id, kind: 'failure' });
    expect(edges).toContainEqual({ from: named('stepA')?.id, to: named('stepB1')?.id, kind: 'success' });
    const plain = await client.read<Graph>(`/api/jobs/${dag}/graph`);
    expect(plain.nodes.every((node) => node.state === null)).toBe(true);
  });

  it('a job has tokens by instant, an overview of them, and durations', async () => {
    const { stepD = '' } = await client.tasks(dag);
    const token = {
      task_id: stepD,
      task_name: 'stepD',
      trigger_datetime: '2022-01-01T00:00:00.000Z',
      state: 'failure',
    };
    expect(await client.read(`/api/jobs/${dag}/tokens?state=failure`)).toMatchObject([token]);
    expect(await client.read(`/api/jobs/${dag}/tokens?before=${day}`)).toEqual([]);
    expect(await client.read<object[]>(`/api/jobs/${dag}/tokens/${day}`)).toContainEqual({
      ...token,
      count: 0,
      threshold: 2,
    });
    const overview = await client.read<{ tokens: { task_states: object }[]; tasks: string[] }>(
      `/api/jobs/${dag}/tokens-overview`,
    );
    expect(overview.tasks).toContain('stepA');
    expect(overview.tokens).toHaveLength(1);
    expect(overview.tokens[0]).toMatchObject({
      trigger_datetime: '2022-01-01T00:00:00.000Z',
      task_states: { stepD: { task_name: 'stepD', task_id: stepD, state: 'failure' } },
    });
    const { duration } = await client.read<{ duration: object[] }>(`/api/jobs/${dag}/duration`);
    expect(duration).toContainEqual({
      trigger_datetime: '2022-01-01T00:00:00.000Z',
      duration: anyNumber,
      task_name: 'stepD',
    });
    for (const bad of ['yesterday', '2022-13-01T00:00:00Z'])
      expect((await client.get(`/api/jobs/${dag}/tokens/${bad}`)).status).toBe(400);
  });

  it('a job’s triggers show the results of their instants', async () => {
    const [trigger] = await client.read<{ trigger_id: string }[]>(`/api/jobs/${dag}/triggers`);
    const info = {
      trigger_id: anyText,
      trigger_name: 'daily',
      start_datetime: '2022-01-01T00:00:00.000Z',
      end_datetime: '2022-01-02T00:00:00.000Z',
      earliest_trigger_datetime: '2022-01-01T00:00:00.000Z',
      latest_trigger_datetime: '2022-01-01T00:00:00.000Z',
      period: 86_400,
      cron: null,
      trigger_offset: null,
      catchup: 'earliest',
    };
    expect(trigger).toMatchObject(info);
    expect(await client.read(`/api/triggers/${trigger?.trigger_id}`)).toMatchObject({
      ...info,
      job_id: dag,
      job_name: 'complex dag',
      project_id: project.uuid,
      project_name: 'test_project',
      times: [{ trigger_datetime: '2022-01-01T00:00:00.000Z', success: 11, running: 0, failure: 1, waiting: 1 }],
    });
  });

  it('a task is shown in the form that its worker gets', async () => {
    const { stepA = '' } = await client.tasks(dag);
    expect(await client.read(`/api/tasks/${stepA}`)).toMatchObject({
      task_id: stepA,
      task_name: 'stepA',
      job_id: dag,
      job_name: 'complex dag',
      project_id: project.uuid,
      project_name: 'test_project',
      image: null,
      env: null,
      paused: false,
      timeout: { secs: 14_400, nanos: 0 },
    });
    expect(await client.read<object[]>(`/api/tasks/${stepA}/runs/${day}`)).toMatchObject([
      { attempt: 1, state: 'success', priority: 'backfill' },
    ]);
  });
});

describe('installation', () => {
  it('the health check is open to all callers', async () => {
    const reply = await ask(`${product.url}/healthcheck`);
    expect([reply.status, reply.text, reply.headers['content-type']]).toEqual([200, 'OK', textWith('text/plain')]);
  });

  it('the status counts projects, workers and running tasks', async () => {
    expect(await client.read('/api/status')).toEqual({ num_projects: anyNumber, num_workers: 1, running_tasks: 0 });
  });

  it('the API lists schedulers', async () => {
    const [scheduler, ...others] = await client.read<object[]>('/api/schedulers');
    expect(others).toEqual([]);
    expect(scheduler).toMatchObject({
      uuid: anyText,
      version: anyText,
      last_seen_datetime: anyText,
      queued_triggers: anyNumber,
      status: 'up',
    });
    expect(Object.keys(scheduler ?? {})).toEqual(
      expect.arrayContaining(['waiting_for_trigger_id', 'waiting_for_trigger_job_id']),
    );
  });

  it('the API lists workers, and one worker with its runs', async () => {
    const workers = await until('a heartbeat reports that nothing runs', async () => {
      const listed = await client.read<{ uuid: string; running_tasks: number }[]>('/api/workers');
      return listed[0]?.running_tasks === 0 ? listed : undefined;
    });
    const worker = {
      uuid: anyText,
      addr: anyText,
      version: anyText,
      last_seen_datetime: anyText,
      running_tasks: 0,
      total_tasks: 8,
      status: 'up',
    };
    expect(workers).toMatchObject([worker]);
    // a worker has done what it had done by its last heartbeat
    const done = await until('a heartbeat came after it', async () => {
      const answer = await client.read<{ tasks: object[] }>(`/api/workers/${workers[0]?.uuid}?state=failure`);
      return answer.tasks.length > 0 ? answer : undefined;
    });
    expect(done).toMatchObject({ ...worker, uuid: workers[0]?.uuid });
    expect(done.tasks).toMatchObject([
      {
        job_id: dag,
        job_name: 'complex dag',
        project_id: project.uuid,
        project_name: 'test_project',
        task_run_id: anyText,
        task_id: anyText,
        task_name: 'stepD',
        trigger_datetime: '2022-01-01T00:00:00.000Z',
        queued_datetime: anyText,
        started_datetime: anyText,
        finish_datetime: anyText,
        state: 'failure',
        attempt: 1,
      },
    ]);
  });

  it("the API accepts the heartbeat of one of Waterwheel's workers", async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'old worker', role: 'worker' } });
    const uuid = randomUUID();
    const beat = {
      uuid,
      addr: '10.0.0.7',
      last_seen_datetime: new Date().toISOString(),
      running_tasks: 3,
      total_tasks: 8,
      version: '0.4.0',
    };
    const headers = { ...bearer(key), 'content-type': 'application/json' };
    expect(
      (await ask(`${product.url}/int-api/heartbeat`, { method: 'POST', headers, body: JSON.stringify(beat) })).status,
    ).toBe(200);
    const workers = await client.read<{ uuid: string }[]>('/api/workers');
    expect(workers.find((worker) => worker.uuid === uuid)).toMatchObject({
      addr: '10.0.0.7',
      running_tasks: 3,
      total_tasks: 8,
      version: '0.4.0',
      status: 'up',
    });
    expect(await client.read('/api/status')).toMatchObject({ num_workers: 2 });
    const ours = bearer(product.rootKey);
    const bad = await ask(`${product.url}/int-api/heartbeat`, {
      method: 'POST',
      headers: { ...headers, ...ours },
      body: '{"uuid":"x"}',
    });
    expect(bad.status).toBe(400);
  });
});
