/** The result that a running task stores by itself, and what a node's run shows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusal } from '../../../test/harness/expected.ts';
import { makeExecution, type NodePlan, queueNodes } from '../../../test/harness/node-runs.ts';
import { activate, claim, finish, makeJob } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, taskOf, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { maxResultBytes } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const at = (): Date => new Date(api.ctx.time.now());
const read = (id: string) => api.as(keyOf('viewer'))('GET /api/runs/{id}', { params: { id } });
const put = (run: string, body: string, { lease = 1, credential = run } = {}) =>
  api.fetch('PUT', `/api/runs/${run}/result`, { caller: taskOf(credential, lease), body });

async function startTask(): Promise<string> {
  const job = await makeJob(api);
  const run = await activate(api, job.tasks['only'], '2026-01-01T00:00:00.000Z');
  await claim(api);
  return run;
}

async function startNode(plan: NodePlan): Promise<string> {
  const [run = ''] = await queueNodes(api.db, at(), [plan]);
  await claim(api);
  return run;
}

describe('the result of a running task', () => {
  it('is stored with the credential of the task, is read with the run, and stays when the run ends', async () => {
    const run = await startTask();
    expect(await read(run)).toMatchObject({ state: 'running', result: null, node: null });
    expect((await put(run, '{"rows": 7}')).status).toBe(204);
    expect((await put(run, '[8]')).status).toBe(204);
    expect(await read(run)).toMatchObject({ state: 'running', result: [8] });
    await finish(api, [{ id: run, lease: 1 } as never]);
    expect(await read(run)).toMatchObject({ state: 'success', result: [8] });
  });

  it('is lost if the run is handed out again', async () => {
    const run = await startTask();
    await put(run, '"half"');
    await api.db.exec(sql`select return_runs(${[run]}::uuid[], ${[1]}::integer[], ${at()}::timestamptz)`);
    await claim(api);
    expect(await read(run)).toMatchObject({ state: 'running', lease: 2, result: null });
    expect((await put(run, '"late"')).status).toBe(403);
    expect((await put(run, '"new"', { lease: 2 })).status).toBe(204);
  });

  it('is rejected after the end of the run, for another run, and from keys', async () => {
    const run = await startTask();
    expect((await put(run, '1', { credential: newId() })).status).toBe(403);
    for (const role of ['viewer', 'operator', 'worker', 'root'] as const)
      expect((await api.fetch('PUT', `/api/runs/${run}/result`, { caller: keyOf(role), body: '1' })).status).toBe(403);
    expect((await api.fetch('PUT', `/api/runs/${run}/result`, { body: '1' })).status).toBe(401);
    await finish(api, [{ id: run, lease: 1 } as never]);
    expect((await put(run, '1')).status).toBe(403);
    expect(await read(run)).toMatchObject({ result: null });
  });

  it.each([
    ['{', 400],
    ['', 400],
    ['\xff', 204],
    [`"${'x'.repeat(maxResultBytes - 2)}"`, 204],
    [`"${'x'.repeat(maxResultBytes - 1)}"`, 413],
    [`${'['.repeat(101)}${']'.repeat(101)}`, 400],
    ['null', 204],
  ])('of the text %.20s is answered with %i', async (body, status) => {
    const text = body === '\xff' ? '"\xff"' : body;
    expect((await put(await startTask(), text)).status).toBe(status);
  });

  it('must be UTF-8', async () => {
    const run = await startTask();
    const request = new Request(`http://tenant/api/runs/${run}/result`, {
      method: 'PUT',
      body: Buffer.from([34, 255, 34]),
    });
    expect((await api.send(request, taskOf(run))).status).toBe(400);
  });
});

describe('a run of a node', () => {
  it('names its execution, node and task', async () => {
    const execution = newId();
    const run = await startNode({ execution, nid: '0_4-9' });
    expect(await read(run)).toMatchObject({
      task: null,
      job: null,
      instant: null,
      node: { execution, id: '0_4-9', name: 'ship' },
    });
  });

  it('has an environment, which its task can read if its params are too long for a variable', async () => {
    const { id: project } = await api.call('PUT /api/projects', { body: { name: `p ${newId()}` } });
    const execution = newId();
    const params = { long: 'x'.repeat(200_000) };
    const run = await startNode({ execution, nid: '0_5', project, params, queue: 'heavy', env: { A: '{{run}}' } });
    const found = await api.as(taskOf(run))('GET /api/runs/{id}/environment', { params: { id: run } });
    expect(found).toMatchObject({ runtime: 'process', queue: 'heavy', command: ['true'], timeout_seconds: 60, params });
    const values = Object.fromEntries(found.variables.map(({ name, value }) => [name, value]));
    expect(values).toMatchObject({
      // texts of nodes have no placeholders
      A: '{{run}}',
      MILLRACE_EXECUTION_ID: execution,
      MILLRACE_NODE_ID: '0_5',
      MILLRACE_NODE_NAME: 'ship',
      MILLRACE_PROJECT_ID: project,
      MILLRACE_PARAMS_URL: `http://127.0.0.1:8080/api/runs/${run}/environment`,
      MILLRACE_CREDENTIAL: null,
    });
    expect(values).not.toHaveProperty('MILLRACE_TASK_NAME');
  });

  it('that sends a request shows its headers as variables, and no others', async () => {
    const runtime = {
      kind: 'http',
      method: 'POST',
      url: 'https://a.test/',
      env: { 'X-A': '1', 'X-B': { stash: 'b' } },
      body: { id: 7 },
      expect: null,
      answer_url: 'https://m.test/answers/mra_secret',
    };
    const run = await startNode({ runtime });
    const found = await api.call('GET /api/runs/{id}/environment', { params: { id: run } });
    expect(found).toMatchObject({
      runtime: 'http',
      command: ['POST', 'https://a.test/'],
      input: { id: 7 },
      variables: [
        { name: 'X-A', value: '1', from: 'document' },
        { name: 'X-B', value: null, stash: 'b' },
      ],
    });
    expect(found.variables).toHaveLength(2);
    expect(JSON.stringify(found)).not.toContain('mra_secret');
  });

  it('whose params and project are gone is still shown', async () => {
    const run = await startNode({ project: newId() });
    const found = await api.call('GET /api/runs/{id}/environment', { params: { id: run } });
    expect(found.params).toEqual({});
    await api.db.exec(sql`delete from node_run where run_id = ${run}`);
    await expect(api.call('GET /api/runs/{id}/environment', { params: { id: run } })).rejects.toEqual(refusal(404));
  });

  it('hides values and result from people if its flow has sealed fields, and not from its task', async () => {
    const execution = await makeExecution(api.db, at());
    await api.db.exec(sql`
      insert into flow_version (flow_id, version, document, actor, at)
      select flow_id, version, '{"flow":"f","sealed":["f.card"],"steps":[]}', 'key:test', ${at()}
        from execution where id = ${execution}`);
    const run = await startNode({ execution, params: { card: 'a card number' }, env: { CARD: 'a card number' } });
    await put(run, '"a card number"');
    const own = await api.as(taskOf(run))('GET /api/runs/{id}/environment', { params: { id: run } });
    expect(own.params).toEqual({ card: 'a card number' });
    const shown = [
      await read(run),
      await api.as(keyOf('viewer'))('GET /api/runs/{id}/environment', { params: { id: run } }),
    ];
    expect(JSON.stringify(shown)).not.toContain('a card number');
    expect(shown[0]).toMatchObject({ result: '•••' });
    expect(await api.as(taskOf(run))('GET /api/runs/{id}', { params: { id: run } })).toMatchObject({
      result: 'a card number',
    });
  });
});
