/**
 * `bench -- pages`: times every list of the API on a tenant with five million old runs. Requests go through the engine's
 * own `fetch` in this process, and the plan of each statement is explained. Then the oldest tenth of the runs is pruned.
 */
import type { Pool, QueryConfig } from 'pg';
import { postgresBroker } from '../src/broker/postgres.ts';
import type { EngineContext, Retention } from '../src/contract/context.ts';
import { engine } from '../src/engine/engine.ts';
import { topics } from '../src/events/append.ts';
import { newestPosition, readEvents } from '../src/events/queries.ts';
import { makeSecrets } from '../src/gateway/access/secrets.ts';
import { newId } from '../src/kernel/id.ts';
import { silent } from '../src/kernel/log.ts';
import { onPool, sql } from '../src/kernel/sql.ts';
import { makeTelemetry } from '../src/kernel/telemetry.ts';
import { systemTime } from '../src/kernel/time.ts';
import { WakeHub } from '../src/postgres/wake.ts';
import { makeHistory, openHistory, type Parts, partsOf } from './history.ts';
import type { Options } from './options.ts';
import { percentiles } from './percentiles.ts';
import { explain, type Plan, type Statement } from './plans.ts';
import { cpuOfTrees } from './processes.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { startServer } from './server.ts';

/** Requests per list. */
const times = 9;

export async function pages(options: Options, report: Report): Promise<Result> {
  const past = { runs: options.runs || (options.quick ? 20_000 : 5_000_000), jobs: options.quick ? 20 : 1_000 };
  const server = await startServer(options);
  const address = await server.fresh('history');
  await makeHistory(address, past, (line) => report.progress(line));
  const pool = openHistory(address);
  const statements: Statement[] = [];
  const hub = new WakeHub(address, silent);
  const ctx = contextOf(recordQueries(pool, statements), hub);
  const results: Page[] = [];
  for (const list of await lists(ctx, pool)) results.push(await measureList(pool, statements, list));
  reportLists(report, results, past.runs);
  const pruned = await prune({ ...ctx, pool }, server.pid, report);
  await pool.end();
  await server.stop();
  const slowest = Math.max(...results.map((page) => page.ms));
  const whole = results.flatMap((page) => page.plan.whole).length;
  const aims = [
    aim('the slowest list', slowest, { below: 100 }, ' ms'),
    aim('tables read from end to end', whole, { below: 1 }, ''),
    aim('runs pruned a second', pruned.rate, { atLeast: options.quick ? 1 : 10_000 }, ''),
  ];
  const all = percentiles(results.map((page) => page.ms));
  return { rate: null, raw: null, ratio: null, percentiles: { lists: all }, aims, details: { results, pruned } };
}

interface Page {
  readonly what: string;
  readonly ms: number;
  readonly statements: number;
  readonly plan: Plan;
}

interface List {
  readonly what: string;
  readonly ask: () => Promise<unknown>;
}

const caller = { kind: 'key', role: 'root', tenantId: null, tenant: null, actor: 'bench' } as const;

async function lists(ctx: EngineContext, pool: Pool): Promise<List[]> {
  const { busy, quiet, worker, run, position } = await partsOf(onPool(pool));
  const get = (what: string, path: string): List => ({ what, ask: () => answer(ctx, path) });
  const ofJob = (kind: string, { job, project, task, trigger, instant }: Parts): List[] => [
    get(`project of a ${kind} job, with counts`, `/api/projects/${project}`),
    get(`jobs of a project with a ${kind} one, with counts`, `/api/projects/${project}/jobs?limit=50`),
    get(`${kind} job, with counts`, `/api/jobs/${job}`),
    get(`tasks of a ${kind} job, with their latest states`, `/api/jobs/${job}/tasks`),
    get(`triggers of a ${kind} job`, `/api/jobs/${job}/triggers`),
    get(`grid of a ${kind} job, 100 instants`, `/api/jobs/${job}/grid?limit=100`),
    get(`firings of a ${kind} job's triggers`, `/api/jobs/${job}/firings`),
    get(`instants of a ${kind} job`, `/api/jobs/${job}/instants?limit=50`),
    get(`tokens of a ${kind} job, 200 instants`, `/api/jobs/${job}/tokens?limit=200`),
    get(`tokens of a ${kind} job that failed`, `/api/jobs/${job}/tokens?state=failure&limit=200`),
    get(`tokens of a ${kind} job by instant`, `/api/jobs/${job}/tokens-overview?limit=50`),
    get(`tokens of a ${kind} job at an instant`, `/api/jobs/${job}/tokens/${instant}`),
    get(`runs of a ${kind} job at an instant`, `/api/jobs/${job}/runs/${instant}`),
    get(`graph of a ${kind} job at an instant`, `/api/jobs/${job}/graph?trigger_datetime=${instant}`),
    get(`durations of a ${kind} job`, `/api/jobs/${job}/duration?limit=31`),
    get(`firings of a ${kind} trigger`, `/api/triggers/${trigger}?limit=50`),
    get(`runs of a ${kind} job`, `/api/runs?job=${job}`),
    get(`runs of a ${kind} job that failed`, `/api/runs?job=${job}&state=failure`),
    get(`runs of a ${kind} task`, `/api/runs?task=${task}`),
    get(`runs of a token of a ${kind} job`, `/api/tasks/${task}/runs/${instant}`),
  ];
  return [
    get('jobs', '/api/jobs?limit=100'),
    get('jobs at a glance', '/api/jobs/overview'),
    get('jobs at a glance, those that fail', '/api/jobs/overview?show=failing'),
    get('jobs at a glance, by words', '/api/jobs/overview?q=job%2001'),
    get('search', '/api/search?q=job%2042'),
    get('search for an id', `/api/search?q=${run}`),
    get('overview', '/api/overview'),
    get('activity of thirty days', '/api/activity?minutes=43200'),
    get('audit', '/api/audit'),
    get('audit, machines too', '/api/audit?machines=true'),
    get('runs', '/api/runs'),
    get('runs that failed', '/api/runs?state=failure'),
    get('runs that run', '/api/runs?state=running'),
    get('runs of a worker', `/api/workers/${worker}`),
    get('one run', `/api/runs/${run}`),
    get('its log', `/api/runs/${run}/logs`),
    get('its history', `/api/runs/${run}/history`),
    get('its attempts', `/api/runs/${run}/attempts`),
    get('its environment', `/api/runs/${run}/environment`),
    get('why it ran', `/api/explain/run/${run}`),
    { what: 'events after a position', ask: () => readEvents(onPool(ctx.pool), { after: position, limit: 500 }) },
    {
      what: 'events of a topic after a position',
      ask: () => readEvents(onPool(ctx.pool), { after: position, limit: 500, topicId: topics.millrace_jobs }),
    },
    { what: 'newest event', ask: () => newestPosition(onPool(ctx.pool)) },
    get('status', '/api/status'),
    ...ofJob('busy', busy),
    ...ofJob('quiet', quiet),
  ];
}

async function answer(ctx: EngineContext, path: string): Promise<void> {
  const response = await engine.fetch(new Request(`http://bench${path}`), ctx, caller);
  const body = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${body}`);
}

/** Returns the median time, and the plan of the costliest statement with the pages and whole scans of all. */
async function measureList(pool: Pool, recorded: Statement[], { what, ask }: List): Promise<Page> {
  const samples: number[] = [];
  for (let n = 0; n < times; n++) {
    recorded.splice(0);
    const startedAt = performance.now();
    await ask();
    samples.push(performance.now() - startedAt);
  }
  const plans: Plan[] = [];
  for (const statement of recorded.splice(0)) plans.push(await explain(pool, statement));
  const [costliest] = plans.toSorted((a, b) => b.ms - a.ms);
  if (costliest === undefined) throw new Error(`${what}: no statement was recorded`);
  const pages = plans.reduce((sum, plan) => sum + plan.pages, 0);
  const whole = plans.flatMap((plan) => plan.whole);
  return { what, ms: percentiles(samples).p50, statements: plans.length, plan: { ...costliest, pages, whole } };
}

function reportLists(report: Report, results: readonly Page[], runs: number): void {
  report.line(
    `Lists on a tenant with ${runs.toLocaleString('en-US')} runs: median ms of ${times}, statements, pages of 8 KB,`,
  );
  report.line('and the rows that the costliest statement read');
  report.table(
    ['', 'ms', 'statements', 'pages', 'read'],
    results.map(({ what, ms, statements, plan }) => [what, figure(ms), statements, plan.pages, plan.scans.join(', ')]),
  );
}

/** Wraps a pool so that it records its queries. */
function recordQueries(pool: Pool, recorded: Statement[]): Pool {
  return new Proxy(pool, {
    get(target, key) {
      if (key !== 'query') return Reflect.get(target, key) as unknown;
      return (query: QueryConfig<unknown[]>) => {
        recorded.push({ text: query.text, values: query.values ?? [] });
        return target.query(query);
      };
    },
  });
}

const keepAll: Retention = { ageMs: null, runs: null, events: null };

function contextOf(pool: Pool, hub: WakeHub): EngineContext {
  const sighting = { addr: '', version: '', lastSeenAt: new Date(), running: 0, places: 8, runtimes: [], queues: [] };
  const tenant = { id: newId(), name: 'default' };
  const worker = { id: '00000000-0000-7000-8000-000000000001', name: 'bench', ...sighting };
  return {
    tenant,
    pool,
    hints: postgresBroker(hub).hintsOf(tenant.id),
    time: systemTime,
    log: silent,
    telemetry: makeTelemetry(() => {}),
    settings: { publicUrl: 'http://127.0.0.1:8080', leaseMs: 30_000, retention: keepAll },
    directory: {
      workers: async () => [worker],
      workerPage: async () => ({ workers: [worker], next: null }),
      worker: async () => worker,
      schedulers: async () => [],
      nextTriggers: async () => [],
      noteScheduler: () => {},
      servingSince: async () => undefined,
    },
    secrets: makeSecrets(['a master key of the benchmark'], () => Date.now()),
    housekeeping: (_, work) => work(),
  };
}

interface Pruned {
  readonly runs: number;
  readonly seconds: number;
  readonly rate: number;
  /** Processor time of the server's processes for a thousand runs with all their rows. */
  readonly msPerThousand: number;
}

/** Prunes by age, with a limit that covers a tenth of all runs. There are no pauses as a scheduler makes them. */
async function prune(ctx: EngineContext, server: number | undefined, report: Report): Promise<Pruned> {
  const { at, runs } = await onPool(ctx.pool).one<{ at: Date; runs: number }>(sql`
    select percentile_disc(0.1) within group (order by finished_at) as at, count(*)::integer / 10 as runs from run`);
  report.progress(`pruning ${runs.toLocaleString('en-US')} runs`);
  const retention = { ...keepAll, ageMs: Date.now() - at.getTime() };
  const cpu = async (): Promise<number> => (server === undefined ? 0 : ((await cpuOfTrees([server]))[0] ?? 0));
  const [startedAt, before] = [performance.now(), await cpu()];
  await engine.prune({ ...ctx, settings: { ...ctx.settings, retention } });
  const seconds = (performance.now() - startedAt) / 1_000;
  const msPerThousand = (((await cpu()) - before) / runs) * 1_000_000;
  report.line(
    `Pruned ${runs.toLocaleString('en-US')} runs with their tokens, firings and logs in ${figure(seconds)} s:`,
  );
  report.line(`${figure(runs / seconds)} a second, ${figure(msPerThousand)} ms of processor time for 1,000`);
  report.line();
  return { runs, seconds, rate: runs / seconds, msPerThousand };
}
