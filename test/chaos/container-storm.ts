/**
 * Containers under faults: workers are killed and frozen, the engine is restarted, images are missing. Every run must end as it
 * would without the faults, its effect must happen once, no container may be left a minute later, and containers of others must still
 * be there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type EngineProcess, startDocker } from '../harness/containers/engine-process.ts';
import { testImage } from '../harness/containers/test-image.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../harness/worker-process.ts';

type Fault = 'kill worker' | 'freeze worker' | 'stop engine' | 'kill engine' | 'hang engine';

export interface StormOptions {
  /** Container tasks that succeed. */
  readonly runs: number;
  /** They come one after another, evenly spread over the runs. */
  readonly faults: readonly Fault[];
  readonly workers: number;
  readonly places: number;
  readonly withinMs: number;
}

export interface StormOutcome {
  /** Task names without exactly one successful run, of container tasks and of what follows them. */
  readonly wrong: readonly string[];
  /** How the runs with a missing image have ended. */
  readonly missing: readonly string[];
  /** The names of containers that a minute later are neither foreign nor gone. */
  readonly left: readonly string[];
  /** Foreign containers that are gone. */
  readonly touched: readonly string[];
}

const missingImages = 5;
/** Longer than a lease: its runs are handed out again meanwhile. */
const frozenMs = 5_000;
const foreignNames = ['foreign-plain', 'foreign-millrace'];

export async function containerStorm(options: StormOptions): Promise<StormOutcome> {
  const engine = await startDocker();
  const product = await startProduct({ args: ['--no-worker'], env: { MILLRACE_LEASE: '3s' } });
  const fleet = new Fleet(product, engine, options.places);
  try {
    await startForeign(engine);
    for (let index = 0; index < options.workers; index++) await fleet.add();
    const job = await startJob(product, options.runs);
    for (const [index, fault] of options.faults.entries()) {
      const share = ((index + 1) * options.runs) / (options.faults.length + 1);
      await until(
        `${Math.floor(share)} runs succeeded before: ${fault}`,
        async () => (await countSuccesses(product, job, /^work/)) >= Math.floor(share) || undefined,
        options.withinMs,
      );
      await fleet.suffer(fault);
    }
    return await conclude({ product, engine, job, options });
  } finally {
    await fleet.stop();
    await product.stop();
    await removeHome(product.home);
    await engine.stop();
  }
}

class Fleet {
  readonly #product: Product;
  readonly #engine: EngineProcess;
  readonly #places: number;
  readonly #workers: WorkerProcess[] = [];

  constructor(product: Product, engine: EngineProcess, places: number) {
    this.#product = product;
    this.#engine = engine;
    this.#places = places;
  }

  async add(): Promise<void> {
    const env = {
      MILLRACE_DOCKER_HOST: this.#engine.host,
      MILLRACE_DOCKER_NETWORK: 'none',
      MILLRACE_MAX_TASKS: String(this.#places),
    };
    this.#workers.push(
      await startWorkerProcess(this.#product, { args: ['--runtime', 'docker', '--runtime', 'none'], env }),
    );
  }

  async suffer(fault: Fault): Promise<void> {
    if (fault === 'kill worker') {
      await this.#workers.shift()?.end('SIGKILL');
      return await this.add();
    }
    if (fault === 'freeze worker') {
      const worker = this.#workers[0];
      worker?.child.kill('SIGSTOP');
      await sleep(frozenMs);
      worker?.child.kill('SIGCONT');
      return;
    }
    if (fault === 'hang engine') {
      this.#engine.signal('SIGSTOP');
      await sleep(frozenMs);
      return this.#engine.signal('SIGCONT');
    }
    await this.#engine.restart(fault === 'kill engine' ? 'SIGKILL' : 'SIGTERM');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.end('SIGTERM')));
  }
}

/** One that has nothing to do with Millrace, and one of a worker elsewhere. */
async function startForeign(engine: EngineProcess): Promise<void> {
  const [plain = '', labelled = ''] = foreignNames;
  const sleeping = [testImage, 'sleep', '10000'];
  await engine.docker('run', '-d', '--network', 'none', '--name', plain, ...sleeping);
  const owner = 'millrace.owner=another-machine/boot/1/2/3/x';
  await engine.docker('run', '-d', '--network', 'none', '--name', labelled, '--label', owner, ...sleeping);
}

/** A task for each run, each followed by another, whose runs count the effects of the first. */
async function startJob({ call }: Product, runs: number): Promise<string> {
  await call('POST /api/projects', { body: { name: 'storm' } });
  const docker = { image: testImage, args: ['sh', '-c', 'echo begin; sleep 0.3; echo end'] };
  // the third loss of a run is an error, which faults as many as these may cause
  const retry = { max_attempts: 10, delay: '100ms', on: ['error'] };
  const work = Array.from({ length: runs }, (_, i) => [
    { name: `work${i}`, docker, retry },
    { name: `after${i}`, depends: [`task/work${i}`] },
  ]);
  const nowhere = { image: '127.0.0.1:1/nowhere:1', args: [] };
  const missing = Array.from({ length: missingImages }, (_, i) => ({ name: `missing${i}`, docker: nowhere }));
  const body = JSON.stringify({ project: 'storm', name: 'storm', tasks: [...missing, ...work.flat()] });
  const { id } = await call('PUT /api/jobs', { body });
  await call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
  return id;
}

async function listRuns({ call }: Product, job: string): Promise<{ name: string; state: string }[]> {
  const found: { name: string; state: string }[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = { job, limit: 1_000, ...(cursor === undefined ? {} : { cursor }) };
    const { items, next } = await call('GET /api/runs', { query });
    found.push(...items.map(({ task, state }) => ({ name: task?.name ?? '', state })));
    if (next === null) return found;
    cursor = next;
  }
}

async function countSuccesses(product: Product, job: string, name: RegExp): Promise<number> {
  return (await listRuns(product, job)).filter((run) => run.state === 'success' && name.test(run.name)).length;
}

interface Ended {
  readonly product: Product;
  readonly engine: EngineProcess;
  readonly job: string;
  readonly options: StormOptions;
}

async function conclude({ product, engine, job, options }: Ended): Promise<StormOutcome> {
  const isOpen = ({ state }: { state: string }): boolean => state === 'queued' || state === 'running';
  const runs = await until(
    'every task has succeeded, and nothing is open',
    async () => {
      const found = await listRuns(product, job);
      const followed = found.filter(({ name, state }) => name.startsWith('after') && state === 'success');
      return followed.length >= options.runs && !found.some(isOpen) ? found : undefined;
    },
    options.withinMs,
  );
  const left = await until(
    'no container is left',
    async () => {
      const names = (await engine.containers()).filter((name) => !foreignNames.includes(name));
      return names.length === 0 ? names : undefined;
    },
    60_000,
  ).catch(async () => (await engine.containers()).filter((name) => !foreignNames.includes(name)));
  const names = Array.from({ length: options.runs }, (_, i) => [`work${i}`, `after${i}`]).flat();
  const successes = new Map<string, number>();
  for (const { name, state } of runs) if (state === 'success') successes.set(name, (successes.get(name) ?? 0) + 1);
  const present = await engine.containers();
  return {
    wrong: names.filter((name) => successes.get(name) !== 1),
    missing: runs.filter(({ name }) => name.startsWith('missing')).map(({ state }) => state),
    left,
    touched: foreignNames.filter((name) => !present.includes(name)),
  };
}
