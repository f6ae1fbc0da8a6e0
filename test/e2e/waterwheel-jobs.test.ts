/** Waterwheel's documents: which are accepted and refused, and how its samples run: offsets, catch-up, own past, cross-job. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, bearer } from '../harness/ask.ts';
import { anyText } from '../harness/expected.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import {
  catchups,
  complexDag,
  dependsOnPast,
  offsets,
  type RunRow,
  type Waterwheel,
  waterwheel,
} from '../harness/waterwheel.ts';

const day = '2022-01-01T00:00:00Z';

let product: Product;
let client: Waterwheel;
beforeAll(async () => {
  product = await startProduct();
  client = waterwheel(product);
  await client.send('POST', '/api/projects', { uuid: randomUUID(), name: 'test_project', description: 'for testing' });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

async function logOf(row: RunRow): Promise<string> {
  return (await client.get(`/api/runs/${row.task_run_id}/logs`)).text;
}

const minimal = (name: string, more: object = {}): object => ({
  uuid: randomUUID(),
  project: 'test_project',
  name,
  description: '',
  triggers: [],
  tasks: [{ name: 'step0' }],
  ...more,
});

describe('document', () => {
  it('a document is accepted as JSON and YAML, by POST and PUT, and as JSON without a content type', async () => {
    const document = minimal('types');
    expect((await client.deploy(document, 'POST')).status).toBe(201);
    expect((await client.deploy(document, 'PUT')).status).toBe(201);
    expect((await client.deploy(JSON.stringify(document), 'POST')).status).toBe(201);
    const headers = bearer(product.rootKey);
    const plain = { method: 'PUT', headers, body: JSON.stringify(document) };
    expect((await ask(`${product.url}/api/jobs`, plain)).status).toBe(201);
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/xml']) {
      const reply = await ask(`${product.url}/api/jobs`, { ...plain, headers: { ...headers, 'content-type': type } });
      expect([type, reply.status]).toEqual([type, 415]);
    }
  });

  it('a document with faults is refused with the path of each, and nothing is written', async () => {
    const trigger = { name: 't', start: day };
    const faulty: readonly (readonly [string, object])[] = [
      ['tasks[0].depends[0]', { tasks: [{ name: 'a', depends: ['task/no such task'] }] }],
      ['tasks[0].depends[0]', { tasks: [{ name: 'a', depends: ['no such job/task/b'] }] }],
      [
        'tasks[0].depends_failure[0]',
        { triggers: [{ ...trigger, period: '1d' }], tasks: [{ name: 'a', depends_failure: ['trigger/t'] }] },
      ],
      ['tasks[0].depends[0]', { tasks: [{ name: 'a', depends: ['task/a@soon'] }] }],
      ['project', { project: 'no such project' }],
      ['triggers[0].period', { triggers: [trigger] }],
      ['triggers[0].cron', { triggers: [{ ...trigger, period: '1d', cron: '0 0 * * * *' }] }],
      ['triggers[0].cron', { triggers: [{ ...trigger, cron: 'at noon' }] }],
      ['triggers[0].period', { triggers: [{ ...trigger, period: 'daily' }] }],
      ['tasks[0].retry.delay', { tasks: [{ name: 'a', retry: { max_attempts: 2, delay: 'soon' } }] }],
    ];
    for (const [path, part] of faulty) {
      const reply = await client.deploy(minimal('faulty', part));
      expect([path, reply.status, reply.json()]).toMatchObject([path, 400, { faults: [{ path }] }]);
    }
    for (const text of ['{', '- a\n- b', 'a: [', '']) expect((await client.deploy(text)).status).toBe(400);
    expect((await client.get('/api/jobs?project=test_project&name=faulty')).status).toBe(404);
  });

  it('a document with the name of another job is a conflict', async () => {
    expect((await client.deploy(minimal('mine'))).status).toBe(201);
    expect((await client.deploy(minimal('mine'))).status).toBe(409);
  });

  it('a document replaces the one before, and keeps a paused job paused unless it says otherwise', async () => {
    const uuid = randomUUID();
    const every = { name: 'every_minute', start: day, period: '1m' };
    const edit = minimal('test_edit', {
      uuid,
      paused: true,
      triggers: [every],
      tasks: [{ name: 'step0', depends: ['trigger/every_minute'] }],
    });
    expect((await client.deploy(edit)).status).toBe(201);
    expect(await client.read(`/api/jobs/${uuid}/paused`)).toBe(true);
    const { step0 } = await client.tasks(uuid);
    expect(
      (await client.deploy(minimal('renamed_edit', { uuid, tasks: [{ name: 'step0' }, { name: 'step1' }] }))).status,
    ).toBe(201);
    expect(await client.read(`/api/jobs/${uuid}`)).toMatchObject({ name: 'renamed_edit', paused: true });
    expect(await client.tasks(uuid)).toEqual({ step0, step1: anyText });
    expect(await client.read(`/api/jobs/${uuid}/triggers`)).toEqual([]);
    expect((await client.send('PUT', `/api/jobs/${uuid}/paused`, { paused: false })).status).toBe(204);
    expect(await client.read(`/api/jobs/${uuid}/paused`)).toBe(false);
    expect((await client.send('DELETE', `/api/jobs/${uuid}`)).status).toBe(204);
    expect((await client.get(`/api/jobs/${uuid}`)).status).toBe(404);
  });
});

describe('schedules', () => {
  it('offsets on edges shift the instant', async () => {
    const uuid = randomUUID();
    expect((await client.deploy(offsets(uuid))).status).toBe(201);
    const [first] = await client.ended(uuid, '2022-01-01T01:00:00Z', ['step1']);
    expect(first?.name).toBe('step1');
    const last = await client.ended(uuid, '2022-01-01T02:00:00Z', ['step2', 'final']);
    expect(last.map((row) => row.name).toSorted()).toEqual(['final', 'step2']);
    expect(await client.read(`/api/jobs/${uuid}/runs/${day}`)).toEqual([]);
  });

  it('each trigger catches up by its policy, and a task waits for the one that does not', async () => {
    const uuid = randomUUID();
    expect((await client.deploy(catchups(uuid))).status).toBe(201);
    const instants = ['2022-01-01T00:00:00Z', '2022-01-01T01:00:00Z', '2022-01-01T02:00:00Z'];
    const caught = ['default', 'earliest', 'latest', 'random'];
    for (const instant of instants) {
      const rows = await client.ended(uuid, instant, caught);
      expect(rows.map((row) => row.name).toSorted()).toEqual(caught);
      const tokens = await until('all four have arrived', async () => {
        const seen = await client.read<{ task_name: string; count: number; state: string }[]>(
          `/api/jobs/${uuid}/tokens/${instant}`,
        );
        return seen.some((token) => token.task_name === 'z_final' && token.count === 4) ? seen : undefined;
      });
      expect(tokens.find((token) => token.task_name === 'z_final')).toMatchObject({
        count: 4,
        threshold: 5,
        state: 'waiting',
      });
    }
  });

  it('periods and offsets are shown in seconds', async () => {
    const uuid = randomUUID();
    const start = '2022-05-14T00:00:00Z';
    const triggers = [
      { name: 'no_offset', start, period: '10m', catchup: 'none' },
      { name: 'pos_offset', start, period: '10m', catchup: 'none', offset: '1m' },
      { name: 'neg_offset', start, period: '10m', catchup: 'none', offset: '-3m' },
      { name: 'nightly', start, cron: '0 30 2 * * *', catchup: 'none' },
    ];
    const tasks = triggers.map(({ name }) => ({ name, depends: [`trigger/${name}`] }));
    expect(
      (
        await client.deploy({
          uuid,
          project: 'test_project',
          name: 'trigger_offset_job',
          description: '',
          triggers,
          tasks,
        })
      ).status,
    ).toBe(201);
    const rows = await client.read<{ trigger_name: string; trigger_offset: number; period: number; cron: string }[]>(
      `/api/jobs/${uuid}/triggers`,
    );
    const told = Object.fromEntries(rows.map((row) => [row.trigger_name, [row.period, row.cron, row.trigger_offset]]));
    expect(told).toEqual({
      no_offset: [600, null, null],
      pos_offset: [600, null, 60],
      neg_offset: [600, null, -180],
      nightly: [null, '0 30 2 * * *', null],
    });
  });
});

describe('job', () => {
  it('a job that depends on its own past advances day by day, in order, each once', async () => {
    const id = randomUUID();
    expect((await client.deploy(dependsOnPast(id))).status).toBe(201);
    const days = [1, 2, 3, 4].map((n) => `2022-01-0${n}T00:00:00Z`);
    const rows = (await Promise.all(days.map((instant) => client.ended(id, instant, ['do_work', 'end'])))).flat();
    const work = rows.filter((row) => row.name === 'do_work');
    expect(work.map((row) => [row.trigger_datetime.slice(0, 10), row.state])).toEqual(
      days.map((instant) => [instant.slice(0, 10), 'success']),
    );
    expect(await Promise.all(work.map(logOf))).toEqual(days.map((instant) => `job running for ${instant}\n`));
    const startedAt = await Promise.all(
      work.map(async (row) => (await client.read<{ started_at: string }>(`/api/runs/${row.task_run_id}`)).started_at),
    );
    expect(startedAt).toEqual(startedAt.toSorted());
    // the day after the last one has half of what it needs
    const tokens = await client.read(`/api/jobs/${id}/tokens/2022-01-05T00:00:00Z`);
    expect(tokens).toMatchObject([{ task_name: 'next', count: 1, threshold: 2, state: 'waiting' }]);
  });

  it('a job without triggers follows the tasks of another', async () => {
    const dag = randomUUID();
    expect((await client.deploy(complexDag(dag).replace('paused: false', 'paused: true'))).status).toBe(201);
    const follower = randomUUID();
    const tasks = [
      { name: 'step0', depends: ['complex dag/task/stepB3'] },
      { name: 'step1', depends: ['test_project/complex dag/task/stepE'] },
      { name: 'success', depends: ['task/step0', 'task/step1'] },
    ];
    const document = {
      uuid: follower,
      project: 'test_project',
      name: 'cross job dependency',
      description: '',
      triggers: [],
      tasks,
    };
    expect((await client.deploy(document)).status).toBe(201);
    expect(await client.read(`/api/jobs/${follower}/runs/${day}`)).toEqual([]);
    expect((await client.send('PUT', `/api/jobs/${dag}/paused`, { paused: false })).status).toBe(204);
    const rows = await client.ended(follower, day, ['step0', 'step1', 'success']);
    expect(rows).toHaveLength(3);
    const graph = await client.read<{ nodes: { name: string; job_id: string }[] }>(`/api/jobs/${follower}/graph`);
    expect(graph.nodes.find((node) => node.name === 'stepB3')).toMatchObject({ job_id: dag });
  });
});
