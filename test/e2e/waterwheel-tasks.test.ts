/** Waterwheel's tasks at work: stash, environment, logs by WebSocket, retries, timeouts, activation (reference §§3, 6, 7). */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { ask, bearer } from '../harness/ask.ts';
import { anyText, textWith } from '../harness/expected.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import { type RunRow, type Waterwheel, waterwheel } from '../harness/waterwheel.ts';

const project = randomUUID();
const day = '2022-01-01T00:00:00Z';

let product: Product;
let client: Waterwheel;
beforeAll(async () => {
  product = await startProduct({ env: { MILLRACE_DOCKER_HOST: 'unix:///nonexistent/docker.sock' } });
  client = waterwheel(product);
  await client.send('POST', '/api/projects', { uuid: project, name: 'test_project', description: 'for testing' });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

/** Deploys a job of such tasks; its id, and the ids of its tasks. */
async function job(
  name: string,
  tasks: readonly object[],
  more: object = {},
): Promise<{ id: string; tasks: Readonly<Record<string, string>> }> {
  const id = randomUUID();
  const document = { uuid: id, project: 'test_project', name, description: '', triggers: [], tasks, ...more };
  expect((await client.deploy(document)).status).toBe(201);
  return { id, tasks: await client.tasks(id) };
}

const shell = (script: string): object => ({ process: { command: ['sh', '-c', script] } });

/** Activates a token as Waterwheel's own page does. */
async function activate(task: string | undefined, instant = day, body: object = {}): Promise<void> {
  expect((await client.send('PUT', `/api/tasks/${task}/tokens/${instant}`, body)).status).toBe(201);
}

async function logOf(row: RunRow | undefined): Promise<string> {
  return (await client.get(`/api/runs/${row?.task_run_id}/logs`)).text;
}

describe('task', () => {
  it('a task reads and writes the stash as the sample task does', async () => {
    const put = (path: string, body: string): Promise<{ status: number }> =>
      ask(product.url + path, { method: 'PUT', headers: bearer(product.rootKey), body });
    expect((await put('/api/stash/test-key', 'test global stash')).status).toBe(201);
    expect((await put(`/api/projects/${project}/stash/test-key`, 'test project stash')).status).toBe(201);
    // Waterwheel's address ends with a slash, and its tasks count on it
    const call = 'curl -sSf -H "Authorization: Bearer $WATERWHEEL_JWT" "${WATERWHEEL_SERVER_ADDR}int-api';
    const own = 'jobs/$WATERWHEEL_JOB_ID/stash/$WATERWHEEL_TRIGGER_DATETIME';
    const { id, tasks } = await job('sample job', [
      {
        name: 'step0',
        ...shell(`${call}/${own}/current-time" -X PUT --data-binary "$WATERWHEEL_TRIGGER_DATETIME" -w %{http_code}`),
      },
      {
        name: 'step1',
        depends: ['task/step0'],
        ...shell(
          [
            `${call}/stash/test-key"`,
            'projects/$WATERWHEEL_PROJECT_ID/stash/test-key"',
            `${own}/current-time"`,
            `${own}/"`,
          ]
            .map((part, i) => (i === 0 ? part : `${call}/${part}`))
            .join('; echo; '),
        ),
      },
    ]);
    await activate(tasks['step0']);
    const [step0, step1] = await client.ended(id, day, ['step0', 'step1']);
    expect(await logOf(step0)).toBe('201');
    expect(await logOf(step1)).toBe(`test global stash\ntest project stash\n${day}\n["current-time"]`);
    expect([step0?.state, step1?.state]).toEqual(['success', 'success']);
    expect(await client.read('/api/stash')).toEqual(['test-key']);
    expect(await client.read(`/api/projects/${project}/stash`)).toEqual(['test-key']);
    expect(await client.read(`/int-api/jobs/${id}/stash/${day}/`)).toEqual(['current-time']);
    for (const path of [
      '/api/stash/test-key',
      `/api/projects/${project}/stash/test-key`,
      `/int-api/jobs/${id}/stash/${day}/current-time`,
    ]) {
      expect((await client.send('DELETE', path)).status).toBe(204);
    }
    expect(await client.read(`/int-api/jobs/${id}/stash/${day}/`)).toEqual([]);
  });

  it('a task of a manual run finds its stash under the instant that it gets', async () => {
    const url = '${WATERWHEEL_SERVER_ADDR}int-api/jobs/$WATERWHEEL_JOB_ID/stash/$WATERWHEEL_TRIGGER_DATETIME/k';
    const script = `curl -sS -H "Authorization: Bearer $WATERWHEEL_JWT" "${url}" -X PUT -d v -w %{http_code}`;
    const { id } = await job('now', [{ name: 'step0', ...shell(script) }]);
    const started = (await client.send('POST', `/api/jobs/${id}/run`, {})).json() as { instant: string };
    const [row] = await client.ended(id, started.instant, ['step0']);
    expect(await logOf(row)).toBe('201');
  });

  it("a task gets its names, ids and instant in Waterwheel's variables", async () => {
    const { id, tasks } = await job('environment', [
      { name: 'env', ...shell('env | grep ^WATERWHEEL_ | grep -v _JWT | sort') },
    ]);
    await activate(tasks['env']);
    const [row] = await client.ended(id, day, ['env']);
    expect((await logOf(row)).trim().split('\n')).toEqual([
      `WATERWHEEL_JOB_ID=${id}`,
      'WATERWHEEL_JOB_NAME=environment',
      `WATERWHEEL_PROJECT_ID=${project}`,
      'WATERWHEEL_PROJECT_NAME=test_project',
      `WATERWHEEL_SERVER_ADDR=${product.url}/`,
      `WATERWHEEL_TASK_ID=${tasks['env']}`,
      'WATERWHEEL_TASK_NAME=env',
      `WATERWHEEL_TRIGGER_DATETIME=${day}`,
    ]);
  });

  it('a container task waits while no worker reaches a Docker engine, and `why` says so', async () => {
    const docker = { image: 'bash:latest', args: ['-c', "echo 'waterwheel is working!'"], env: ['LEVEL=info'] };
    const { id, tasks } = await job('simple_job', [{ name: 'step0', docker }]);
    expect(await client.read(`/api/tasks/${tasks['step0']}`)).toMatchObject({
      image: 'bash:latest',
      args: docker.args,
      env: ['LEVEL=info'],
    });
    await activate(tasks['step0']);
    const run = await until('the run', async () => (await client.read<RunRow[]>(`/api/jobs/${id}/runs/${day}`))[0]);
    expect(await client.read(`/api/explain/run/${run.task_run_id}`)).toMatchObject({
      reasons: [
        { code: 'runtime_unavailable', message: textWith('/nonexistent/docker.sock does not exist') },
        { code: 'activated' },
      ],
    });
  });

  it('a failing task is retried up to its last attempt, and only then fires its failure edges', async () => {
    const { id, tasks } = await job('retry_demo', [
      { name: 'step0', ...shell('exit 7'), timeout: '50s', retry: { max_attempts: 3, delay: '100ms' } },
      { name: 'success', depends: ['task/step0'] },
      { name: 'failure', depends_failure: ['task/step0'] },
    ]);
    await activate(tasks['step0']);
    const rows = await client.ended(id, day, ['failure']);
    const attempts = rows.filter((row) => row.name === 'step0');
    expect(attempts.map(({ attempt, state }) => [attempt, state])).toEqual([
      [1, 'failure'],
      [2, 'failure'],
      [3, 'failure'],
    ]);
    expect(rows.map((row) => row.name)).not.toContain('success');
    expect(rows.filter((row) => row.name === 'failure')).toHaveLength(1);
  });

  it('a task shows `retry` while it waits for its next attempt', async () => {
    const { id, tasks } = await job('patient', [
      { name: 'step0', ...shell('exit 7'), retry: { max_attempts: 5, delay: '2m' } },
    ]);
    await activate(tasks['step0']);
    await client.ended(id, day, ['step0']);
    expect(await client.read(`/api/jobs/${id}/tokens/${day}`)).toMatchObject([{ task_name: 'step0', state: 'retry' }]);
    expect((await client.send('DELETE', `/api/jobs/${id}/tokens/${day}`)).json()).toEqual({ tokens_cleared: 1 });
    expect(await client.read(`/api/jobs/${id}/tokens/${day}`)).toMatchObject([
      { task_name: 'step0', state: 'waiting', count: 0 },
    ]);
  });

  it('a task that takes too long is killed, and its timeout fires the failure edges', async () => {
    const { id, tasks } = await job('slow', [
      { name: 'step0', ...shell('echo begun; sleep 600; echo never'), timeout: '1s' },
      { name: 'failure', depends_failure: ['task/step0'] },
    ]);
    await activate(tasks['step0']);
    const rows = await client.ended(id, day, ['step0', 'failure']);
    const run = rows.find((row) => row.name === 'step0');
    expect([run?.state, await logOf(run)]).toEqual(['timeout', 'begun\n']);
  });
});

describe('runs', () => {
  it('runs start at once, however often the configuration of their project changes meanwhile', async () => {
    const { id, tasks } = await job('undisturbed', [{ name: 'step0' }]);
    const instants = Array.from({ length: 100 }, (_, i) => new Date(Date.parse(day) + i * 1_000).toISOString());
    for (const [i, instant] of instants.entries()) {
      const change = { uuid: project, name: 'test_project', description: `change ${i}`, config: { i } };
      await Promise.all([client.send('PUT', '/api/projects', change), activate(tasks['step0'], instant)]);
    }
    await until(
      'all have ended',
      async () =>
        (await client.read<{ active_tasks: number; succeeded_tasks_last_hour: number }>(`/api/jobs/${id}`))
          .succeeded_tasks_last_hour === 100 || undefined,
      5_000,
    );
  });
});

describe('activation', () => {
  it('an activation runs one token at high priority, or at the requested one', async () => {
    const { id, tasks } = await job('by hand', [{ name: 'step0', depends: ['task/never'] }, { name: 'never' }]);
    await activate(tasks['step0']);
    await activate(tasks['step0'], '2022-01-02T00:00:00Z', { priority: 'low' });
    expect(await client.ended(id, day, ['step0'])).toMatchObject([
      { name: 'step0', priority: 'high', state: 'success' },
    ]);
    expect(await client.ended(id, '2022-01-02T00:00:00Z', ['step0'])).toMatchObject([
      { priority: 'low', state: 'success' },
    ]);
    expect(
      (await client.send('PUT', `/api/tasks/${tasks['step0']}/tokens/${day}`, { priority: 'urgent' })).status,
    ).toBe(400);
    expect((await client.send('PUT', `/api/tasks/${randomUUID()}/tokens/${day}`, {})).status).toBe(404);
  });

  it('an activation runs all or only the failed tokens between two exclusive bounds', async () => {
    const { id, tasks } = await job('many', [
      { name: 'step0', ...shell('test "$WATERWHEEL_TRIGGER_DATETIME" != 2022-01-02T00:00:00Z') },
    ]);
    const days = [1, 2, 3, 4].map((n) => `2022-01-0${n}T00:00:00Z`);
    for (const instant of days) await activate(tasks['step0'], instant);
    for (const instant of days) await client.ended(id, instant, ['step0']);
    const many = (body: object): Promise<unknown> =>
      client
        .send('POST', `/api/tasks/${tasks['step0']}/tokens`, body)
        .then((reply) => (reply.status === 200 ? reply.json() : reply.status));
    expect(await many({})).toBe(400);
    expect(await many({ first: days[0], last: days[3] })).toEqual({ cleared: 2 });
    const again = await until('the second day has run again', async () => {
      const rows = await client.ended(id, '2022-01-02T00:00:00Z', ['step0']);
      return rows.filter((row) => row.state === 'failure').length === 2 ? rows : undefined;
    });
    expect(again.map((row) => row.priority)).toEqual(['high', 'backfill']);
    expect(await many({ only_failed: true })).toEqual({ cleared: 1 });
  });
});

describe('WebSocket of a log', () => {
  const url = (run: string): string => `${product.url.replace('http', 'ws')}/api/task_runs/${run}/logs`;

  interface Followed {
    readonly frames: string[];
    /** With which code it was closed. */
    readonly closed: Promise<number>;
  }

  function follow(run: string, key = product.rootKey): Followed {
    const frames: string[] = [];
    const socket = new WebSocket(url(run), { headers: bearer(key) });
    socket.on('message', (data: Buffer, binary) => frames.push(binary ? 'binary' : data.toString()));
    const closed = new Promise<number>((resolve, reject) => {
      socket.on('close', (code) => resolve(code));
      socket.on('error', reject);
    });
    return { frames, closed };
  }

  function refusal(run: string, headers: Record<string, string> = {}): Promise<number> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url(run), { headers });
      socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
      socket.on('open', () => reject(new Error('it was opened')));
      socket.on('error', reject);
    });
  }

  it('the WebSocket sends a frame for each line from the start, and closes when the run has ended', async () => {
    const { id, tasks } = await job('talks', [{ name: 'step0', ...shell('echo one; echo; echo "drei ü"; sleep 600') }]);
    await activate(tasks['step0']);
    const run = await until('it runs', async () =>
      (await client.read<RunRow[]>(`/api/jobs/${id}/runs/${day}`)).find((row) => row.state === 'running'),
    );
    const live = follow(run.task_run_id);
    await until('the lines so far have come', () => live.frames.length >= 3 || undefined);
    expect(live.frames).toEqual(['one', '', 'drei ü']);
    expect((await client.send('POST', `/api/runs/${run.task_run_id}/cancel`)).status).toBe(202);
    expect(await live.closed).toBe(1000);
    const late = follow(run.task_run_id);
    expect(await late.closed).toBe(1000);
    expect(late.frames).toEqual(['one', '', 'drei ü']);
  });

  it('the WebSocket sends thousands of lines, also a last one without a line end', async () => {
    const { id, tasks } = await job('talks much', [{ name: 'step0', ...shell('seq 1 20000; printf end >&2') }]);
    await activate(tasks['step0']);
    const [run] = await client.ended(id, day, ['step0']);
    const all = follow(run?.task_run_id ?? '');
    expect(await all.closed).toBe(1000);
    expect([all.frames.length, all.frames.at(0), all.frames.at(-2), all.frames.at(-1)]).toEqual([
      20_001,
      '1',
      '20000',
      'end',
    ]);
  });

  it('the WebSocket is refused without a key, with one that may not read, and for an unknown run', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'publishes', role: 'publisher' } });
    expect(await refusal(randomUUID())).toBe(401);
    expect(await refusal(randomUUID(), bearer('mrk_wrong'))).toBe(401);
    expect(await refusal(randomUUID(), bearer(key))).toBe(403);
    expect(await refusal(randomUUID(), bearer(product.rootKey))).toBe(404);
    expect(await refusal('no-uuid', bearer(product.rootKey))).toBe(400);
    const plain = await client.get(`/api/task_runs/${randomUUID()}/logs`);
    expect([plain.status, plain.json()]).toMatchObject([404, { code: anyText }]);
  });
});
