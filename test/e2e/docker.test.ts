/** Containers through the whole product: Waterwheel's samples, the examples, an engine that stops, workers that are killed. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EngineProcess, startDocker } from '../harness/containers/engine-process.ts';
import { testImage } from '../harness/containers/test-image.ts';
import { textWith } from '../harness/expected.ts';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';
import { type Waterwheel, waterwheel } from '../harness/waterwheel.ts';
import { startWorkerProcess } from '../harness/worker-process.ts';

const examples = fileURLToPath(new URL('../../examples/docker/', import.meta.url));
const books = join(tmpdir(), `millrace-books-${randomUUID()}`);
const day = '2022-01-01T00:00:00Z';

/** The images that the samples name, made of the test image: bash has an entrypoint, the others have commands of their own. */
const sampleImages = {
  'bash:latest': 'ENTRYPOINT ["sh"]',
  'waterwheel_custom:1': 'CMD ["sh", "-c", "echo custom $WATERWHEEL_TASK_NAME"]',
  'waterwheel_random:1': 'CMD ["sh", "-c", "echo failing at $FAIL_PERCENTAGE %; exit 1"]',
  'busybox:1.36': 'CMD ["sh"]',
};

describe.skipIf(!needs('docker') || !needs('busybox'))('containers', () => {
  let engine: EngineProcess;
  let product: Product;
  let client: Waterwheel;

  beforeAll(async () => {
    engine = await startDocker();
    for (const [image, change] of Object.entries(sampleImages)) {
      const made = await engine.docker('create', '--network', 'none', testImage, 'true');
      await engine.docker('commit', '--change', change, made, image);
      await engine.docker('rm', made);
    }
    await mkdir(books);
    await writeFile(join(books, 'moby-dick'), '');
    await writeFile(join(books, 'emma'), '');
    product = await startProduct({
      env: { ...settings(), MILLRACE_DOCKER_VOLUMES: books, MILLRACE_LEASE: '3s' },
    });
    client = waterwheel(product);
    await client.send('POST', '/api/projects', { uuid: randomUUID(), name: 'test_project', description: '' });
  });
  afterAll(async () => {
    await product?.stop();
    if (product !== undefined) await removeHome(product.home);
    try {
      expect(await engine?.containers()).toEqual([]);
    } finally {
      await engine?.stop();
      await rm(books, { recursive: true, force: true });
    }
  });

  const settings = (): Record<string, string> => ({
    MILLRACE_DOCKER_HOST: engine.host,
    MILLRACE_DOCKER_NETWORK: 'none',
  });

  /** Deploys tasks with Waterwheel's client. Returns the id of the job, which has fired once. */
  async function deploy(name: string, tasks: readonly object[]): Promise<string> {
    const uuid = randomUUID();
    const triggers = [{ name: 'daily', start: day, end: '2022-01-02T00:00:00Z', period: '1d' }];
    const document = { uuid, project: 'test_project', name, description: 'a sample', paused: false, triggers, tasks };
    expect((await client.deploy(document)).status).toBe(201);
    return uuid;
  }

  async function logOf(run: string | undefined): Promise<string> {
    return (await client.get(`/api/runs/${run}/logs`)).text;
  }

  describe('of Waterwheel', () => {
    it('run as its samples name them: an entrypoint with arguments, and a job that waits for its own past', async () => {
      const simple = await deploy('simple_job', [
        {
          name: 'step0',
          docker: { image: 'bash:latest', args: ['-c', "echo 'waterwheel is working!'"] },
          depends: ['trigger/daily'],
        },
      ]);
      const past = await deploy('depends_on_past', [
        { name: 'next', depends: ['trigger/daily', 'task/end@1d'] },
        { name: 'start', threshold: 1, depends: ['trigger/daily', 'task/next'] },
        {
          name: 'do_work',
          docker: { image: 'bash', args: ['-c', 'echo "job running for $WATERWHEEL_TRIGGER_DATETIME"'] },
          depends: ['task/start'],
        },
        { name: 'end', depends: ['task/do_work'] },
      ]);
      const [step] = await client.ended(simple, day, ['step0'], 'success');
      expect(await logOf(step?.task_run_id)).toBe('waterwheel is working!\n');
      const rows = await client.ended(past, day, ['do_work', 'end'], 'success');
      const worked = rows.find(({ name }) => name === 'do_work');
      expect(await logOf(worked?.task_run_id)).toBe(`job running for ${day}\n`);
    });

    it('run images with commands of their own, beside others, and fail and retry as declared', async () => {
      const demo = await deploy('sample job', [
        { name: 'step0', docker: { image: 'waterwheel_custom:1', args: [] }, depends: ['trigger/daily'] },
        { name: 'step1', docker: { image: 'waterwheel_custom:1', args: [] }, depends: ['task/step0'] },
        {
          name: 'step2',
          docker: { image: 'bash', args: ['-c', 'echo $WATERWHEEL_TASK_NAME'] },
          depends: ['trigger/daily'],
        },
        { name: 'failure', depends_failure: ['task/step1', 'task/step2'] },
        { name: 'success', depends: ['task/step1', 'task/step2'], threshold: 1 },
      ]);
      const retry = await deploy('retry_demo', [
        {
          name: 'step0',
          docker: { image: 'waterwheel_random:1', args: [], env: ['FAIL_PERCENTAGE=95'] },
          timeout: '50s',
          retry: { max_attempts: 3, delay: '100ms' },
          depends: ['trigger/daily'],
        },
        { name: 'success', depends: ['task/step0'] },
        { name: 'failure', depends_failure: ['task/step0'] },
      ]);
      const rows = await client.ended(demo, day, ['step1', 'step2', 'success'], 'success');
      const logs = ['step1', 'step2'].map((name) => logOf(rows.find((row) => row.name === name)?.task_run_id));
      expect(await Promise.all(logs)).toEqual(['custom step1\n', 'step2\n']);
      const tried = await client.ended(retry, day, ['failure'], 'success');
      const steps = tried.filter(({ name }) => name === 'step0');
      expect(steps.map(({ state }) => state)).toEqual(['failure', 'failure', 'failure']);
      expect(await logOf(steps[0]?.task_run_id)).toBe('failing at 95 %\n');
    });
  });

  it('run the documents of examples/docker', async () => {
    const applied = await millrace(['apply', '-f', examples, '--create-project'], { home: product.home });
    expect(applied).toMatchObject({ code: 0 });
    const ran = await millrace(['run', 'demo/hello container', '--param', 'name=docker', '--wait'], {
      home: product.home,
    });
    expect(ran).toMatchObject({ code: 0 });
    const { items } = await product.call('GET /api/runs', { query: { state: 'success' } });
    const of = (name: string): string | undefined => items.find(({ task }) => task?.name === name)?.id;
    expect(await logOf(of('greet'))).toBe('hello, docker\n1000\n/tmp\n');
    expect(await logOf(of('follow'))).toBe('and so does follow\n');
    // the example names a folder that this worker does not allow
    await millrace(['run', 'demo/count books'], { home: product.home });
    const counted = await until('the run with a volume ended', async () => {
      const found = await product.call('GET /api/runs', { query: { state: 'error' } });
      return found.items.find(({ task }) => task?.name === 'count');
    });
    expect(counted.reason).toContain('docker.volumes[0]: this worker does not allow the folder "/srv/books"');
  });

  it('get the stash, which neither the log nor the labels show', async () => {
    await client.send('PUT', '/api/stash/door', 'open-sesame');
    const job = await deploy('secrets', [
      {
        name: 'knock',
        docker: {
          image: testImage,
          args: ['sh', '-c', 'echo "$DOOR $MILLRACE_CREDENTIAL"'],
          env: { DOOR: { stash: 'door' } },
        },
        depends: ['trigger/daily'],
      },
    ]);
    const [row] = await client.ended(job, day, ['knock'], 'success');
    expect(await logOf(row?.task_run_id)).toBe('*** ***\n');
  });

  it('wait while the engine is stopped, which `why` and the worker say, and run when it is back', async () => {
    await engine.end('SIGTERM');
    await until('the worker leaves the lane', async () => {
      const workers = await client.read<{ unavailable?: Record<string, string> }[]>('/api/workers');
      return workers.some(({ unavailable }) => unavailable?.['docker']?.includes('engine.sock')) || undefined;
    });
    const job = await deploy('waiting', [
      { name: 'late', docker: { image: testImage, args: ['echo', 'here'] }, depends: ['trigger/daily'] },
    ]);
    const run = await until('it is queued', async () => {
      const rows = await client.read<{ task_run_id: string }[]>(`/api/jobs/${job}/runs/${day}`);
      return rows[0]?.task_run_id;
    });
    // a poll from before may be given it, and returns it
    const reasons = await until('it waits for the engine', async () => {
      const explained = await client.read<{ reasons: { code: string }[] }>(`/api/explain/run/${run}`);
      return explained.reasons[0]?.code === 'runtime_unavailable' ? explained.reasons : undefined;
    });
    expect(reasons).toMatchObject([{ message: textWith('the Docker engine at') }, { code: 'caught_up' }]);
    await engine.restart('SIGTERM');
    const [row] = await client.ended(job, day, ['late'], 'success');
    expect(row).toMatchObject({ attempt: 1 });
  });

  it('of a worker that is killed are ended, and its runs succeed elsewhere, once in effect', async () => {
    const args = ['--queue', 'doomed', '--runtime', 'docker'];
    const env = settings();
    const first = await startWorkerProcess(product, { args, env });
    const job = await deploy('doomed', [
      {
        name: 'slow',
        queue: 'doomed',
        docker: { image: testImage, args: ['sh', '-c', 'echo started; sleep 3'] },
        depends: ['trigger/daily'],
      },
      { name: 'after', depends: ['task/slow'] },
    ]);
    await until('its container runs', async () => (await engine.docker('ps', '-q')) !== '' || undefined);
    const [container = ''] = await engine.containers();
    await first.end('SIGKILL');
    await until('its container is removed', async () => !(await engine.containers()).includes(container) || undefined);
    const second = await startWorkerProcess(product, { args, env });
    const rows = await client.ended(job, day, ['slow', 'after'], 'success');
    expect(rows.map(({ name, attempt }) => `${name} ${attempt}`).toSorted()).toEqual(['after 1', 'slow 1']);
    expect(await second.end('SIGTERM')).toBe(0);
  });
});
