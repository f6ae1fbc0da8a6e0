/**
 * An installation as on a working day: two weeks of past, jobs that are running, one that fails, one that no worker can
 * run, one at its limit, an unfinished backfill, keys, and a silent worker.
 */
import { newId } from '../../../src/kernel/id.ts';
import { onDatabase } from '../../../src/postgres/address.ts';
import { withClient } from '../../../src/postgres/databases.ts';
import { type Endpoints, type Product } from '../product.ts';
import { makeClient, pageIn } from '../../../src/http/client.ts';
import { controlAddress } from '../second-tenant.ts';
import { until } from '../until.ts';
import { documents, projects } from './documents.ts';
import { writePast } from './past.ts';

export interface Seeded {
  /** Ids by `project/name`. */
  readonly jobs: ReadonlyMap<string, string>;
  /** A failed run of `price feed/parse`, with a log. */
  readonly failed: string;
  /** A run that waits for a queue that no worker serves. */
  readonly waiting: string;
  /** Ids by name. */
  readonly projects: ReadonlyMap<string, string>;
  readonly worker: string;
}

export async function seed(product: Product): Promise<Seeded> {
  const { call } = product;
  await call('POST /api/keys', { body: { name: 'wall display', role: 'viewer' } });
  const operator = await call('POST /api/keys', { body: { name: 'anna', role: 'operator' } });
  await call('POST /api/keys', { body: { name: 'deploy', role: 'operator' } });
  const anna = makeClient<Endpoints>({ base: product.url, headers: { authorization: `Bearer ${operator.key}` } });
  const projectIds = new Map<string, string>();
  for (const project of projects) {
    const { id } = await anna('PUT /api/projects', { body: project });
    projectIds.set(project.name, id);
  }
  await anna('PUT /api/pools/{name}', { params: { name: 'lake' }, body: { places: 2 } });
  await anna('PUT /api/stash/{key}', { params: { key: 'lake-password' }, body: new TextEncoder().encode('x') });
  const jobs = new Map<string, string>();
  for (const document of documents) {
    const { id } = await anna('PUT /api/jobs', { body: JSON.stringify(document) });
    jobs.set(`${document.project}/${document.name}`, id);
  }
  const control = await controlAddress(product.home);
  const tenant = await withClient(control, async (client) => {
    await client.query('set search_path to control');
    await client.query(
      `insert into worker (id, incarnation, name, addr, version, places, running, runtimes, queues, first_seen_at, beat_at)
       values ($1, 1, 'attic', '10.0.0.9', '0.1.0', 16, 0, '{process}', '{default}', clock_timestamp() - interval '9 days',
               clock_timestamp() - interval '3 hours')`,
      [newId()],
    );
    const { rows } = await client.query<{ database: string }>(`select database from tenant where name = 'default'`);
    return onDatabase(control, rows[0]?.database ?? '');
  });
  await withClient(tenant, (client) => writePast(product, client));
  const idOf = (name: string): string => jobs.get(name) ?? '';
  await anna('POST /api/jobs/{id}/run', { params: { id: idOf('shop/nightly report') }, body: {} });
  await anna('POST /api/jobs/{id}/run', { params: { id: idOf('warehouse/ingest') }, body: {} });
  await anna('POST /api/jobs/{id}/run', { params: { id: idOf('shop/price feed') }, body: {} });
  await anna('POST /api/jobs/{id}/run', { params: { id: idOf('warehouse/train recommender') }, body: {} });
  await change(anna, idOf('shop/nightly report'));
  const failed = await runOf(product, idOf('shop/price feed'), 'parse', (run) => run.finished_at !== null);
  const waiting = await runOf(product, idOf('warehouse/train recommender'), 'train', (run) => run.finished_at === null);
  await withClient(tenant, (client) =>
    client.query(`update millrace.live set queued_at = queued_at - interval '25 minutes' where id = $1`, [waiting]),
  );
  const hour = 3_600_000;
  const now = Math.floor(Date.now() / hour) * hour;
  await anna('POST /api/jobs/{id}/backfill', {
    params: { id: idOf('warehouse/ingest') },
    body: {
      first: new Date(now - 12 * hour).toISOString(),
      last: new Date(now - hour).toISOString(),
      name: 'new source',
    },
  });
  const { items: workers } = pageIn(await anna('GET /api/workers'));
  const worker = workers.find(({ status }) => status === 'up')?.uuid ?? '';
  return { jobs, failed, waiting, projects: projectIds, worker };
}

/** Applies a changed document, so that there is a diff. */
async function change(anna: Product['call'], job: string): Promise<void> {
  const { raw_definition: text } = await anna('GET /api/jobs/{id}', { params: { id: job } });
  const document = JSON.parse(text) as { tasks: { name: string; timeout?: string }[] };
  const changed = document.tasks.map((task) => (task.name === 'join' ? { ...task, timeout: '20m' } : task));
  await anna('PUT /api/jobs', { body: JSON.stringify({ ...document, tasks: changed }) });
}

type Run = Awaited<ReturnType<typeof listRuns>>[number];

async function listRuns(product: Product, job: string) {
  return (await product.call('GET /api/runs', { query: { job, limit: 100 } })).items;
}

async function runOf(product: Product, job: string, task: string, fits: (run: Run) => boolean): Promise<string> {
  return until(`a run of ${task}`, async () => {
    const runs = await listRuns(product, job);
    return runs.find((run) => run.task?.name === task && fits(run))?.id;
  });
}
