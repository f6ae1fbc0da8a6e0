/**
 * `bench -- isolation`: measures what a tenant notices of its neighbours. The product is a real `up` with a worker process
 * over HTTP. All schedulers share a host; all tenants share a server, a gateway and a worker.
 *
 * One tenant has fifty triggers a second, each with a parent and a child task. We measure how late its triggers fire, how
 * late its runs start, and how long the hand-over from parent to child takes. Measurements of the tenant alone alternate
 * with measurements beside a harmed neighbour (`harms.ts`).
 *
 * Tasks here execute nothing, so a run ends as it starts. The hand-over is therefore the time from the parent's start to
 * the child's start, both as noted by the worker. Tenants whose scheduler misbehaves come last (`villains.ts`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../src/kernel/sql.ts';
import { withClient } from '../src/postgres/databases.ts';
import { type HarmName, harmNames, harms } from './harms.ts';
import type { Options } from './options.ts';
import { type Percentiles, percentiles } from './percentiles.ts';
import { startUp, startWorker, type Up } from './product.ts';
import { type Aim, aim, figure, type Report, type Result } from './report.ts';
import { type Server, startServer } from './server.ts';
import { measureVillains } from './villains.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from './tenant.ts';

const perSecond = 50;
/** Triggers per second of a neighbour, so that it is alive before it is harmed. */
const neighbourPerSecond = 10;
const places = 8;
/** Time for every trigger to fire once before measuring, and for the after-effects of a harm to fade. */
const settleMs = 2_000;
/** Time between applying a job and its first instant. */
const noticeMs = 1_000;
const patienceMs = 60_000;
/** Tolerated above twice the p99 of the tenant alone: noise of a busy machine. */
const slackMs = 5;

interface Samples {
  readonly fired: number[];
  readonly started: number[];
  readonly handover: number[];
}
const kinds = ['fired', 'started', 'handover'] as const;
type Figures = Readonly<Record<(typeof kinds)[number], Percentiles>>;

interface HarmResult extends Result {
  readonly details: { readonly worked: Readonly<Record<string, number>> };
}

interface World {
  readonly server: Server;
  readonly up: Up;
  readonly tenant: Tenant;
  readonly options: Options;
  readonly report: Report;
}

export async function isolation(options: Options, report: Report): Promise<Result> {
  if (options.harm === 'villains') {
    if (options.database !== undefined) throw new Error('--harm villains takes no --database: it measures processes');
    const { aims, harms: villains } = await measureVillains(options, report);
    return { rate: null, raw: null, ratio: null, percentiles: {}, aims, details: { villains } };
  }
  const result = await measureHarms(options, report, options.harm);
  if (options.harm !== undefined || options.database !== undefined) return result;
  const { aims, harms: villains } = await measureVillains(options, report);
  return { ...result, aims: [...result.aims, ...aims], details: { ...result.details, villains } };
}

async function measureHarms(options: Options, report: Report, harm: HarmName | undefined): Promise<HarmResult> {
  const server = await startServer(options);
  const control = await server.fresh(controlDatabase);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: false });
  const { key } = await up.call('POST /api/keys', { body: { name: 'bench', role: 'worker' } });
  const worker = await startWorker({ url: up.url, key, places });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  const world: World = { server, up, tenant, options, report };
  await tenant.apply([ticking(perSecond)]);
  await sleep(noticeMs + settleMs);
  const alone: Samples = { fired: [], started: [], handover: [] };
  const beside = new Map<HarmName, Figures>();
  const drained = new Map<HarmName, number>();
  for (const name of harm === undefined ? harmNames : [harm]) {
    report.progress('alone');
    const samples = await measure(world, 'alone');
    for (const kind of kinds) alone[kind].push(...samples[kind]);
    const { figures, worked } = await measureBeside(world, name);
    beside.set(name, figures);
    drained.set(name, worked);
  }
  await tenant.close();
  await worker.stop();
  await up.stop();
  await server.stop();
  return reportResults(report, figuresOf(alone), beside, drained);
}

/** A job with `count` triggers a second, a parent and a child for each, and a task whose runs make up a flood. */
function ticking(count: number): object {
  const numbers = Array.from({ length: count }, (_, i) => i);
  const firstAt = Date.now() + noticeMs;
  const start = (i: number): string => new Date(firstAt + (i * 1_000) / count).toISOString();
  return {
    name: 'ticking',
    triggers: numbers.map((i) => ({ name: `t${i}`, start: start(i), period: '1s' })),
    tasks: [
      ...numbers.map((i) => ({ name: `p${i}`, depends: [`trigger/t${i}`] })),
      ...numbers.map((i) => ({ name: `c${i}`, depends: [`task/p${i}`] })),
      { name: 'flood' },
    ],
  };
}

async function measureBeside(
  world: World,
  name: HarmName,
): Promise<{ readonly figures: Figures; readonly worked: number }> {
  const { server, up, options, report } = world;
  const harm = harms[name];
  report.progress(harm.title);
  server.reserve(name);
  if (harm.isComparison !== true) await makeNeighbour(world, name);
  const flood = options.runs > 0 ? options.runs : options.quick ? 20_000 : 1_000_000;
  const undo = await harm.begin({ server, up, name, flood });
  const before = await countEnded(server, name);
  const startedAt = performance.now();
  const figures = figuresOf(await measure(world, harm.title));
  const worked = ((await countEnded(server, name)) - before) / ((performance.now() - startedAt) / 1_000);
  await undo();
  await server.drop(name);
  await sleep(options.quick ? 0 : settleMs);
  return { figures, worked };
}

async function makeNeighbour({ server, up, options }: World, name: string): Promise<void> {
  await up.call('POST /api/tenants', { body: { name } });
  for (const fromMs = Date.now(); ; await sleep(20)) {
    const { state } = await up.call('GET /api/tenants/{name}', { params: { name } });
    if (state === 'STARTED') break;
    if (Date.now() - fromMs > patienceMs)
      throw new Error(`tenant ${name} has not started within ${patienceMs / 1_000} s`);
  }
  const neighbour = await openTenant(server.address(controlDatabase), server.address(name), name);
  await neighbour.apply([ticking(neighbourPerSecond)]);
  await neighbour.close();
  await sleep(noticeMs + (options.quick ? 0 : settleMs));
}

/** Counts the ended runs of a tenant; 0 if its database cannot be read. */
async function countEnded(server: Server, name: string): Promise<number> {
  try {
    return await withClient(server.address(name), async (client) => {
      const { rows } = await client.query<{ n: number }>('select count(*)::integer as n from millrace.run');
      return rows[0]?.n ?? 0;
    });
  } catch {
    return 0;
  }
}

/** Measures all instants of the next `options.seconds` seconds; returns when their last run has ended. */
async function measure({ tenant, options }: World, beside: string): Promise<Samples> {
  const from = new Date();
  const to = new Date(from.getTime() + options.seconds * 1_000);
  const wanted = Math.floor(perSecond * options.seconds) - 1;
  for (;;) {
    await sleep(Math.max(100, to.getTime() - Date.now()));
    const rows = await tenant.db.rows<{ fired: number; started: number; handover: number }>(sql`
      select extract(epoch from p.queued_at - p.instant)::float8 * 1000 as fired,
             extract(epoch from p.started_at - p.instant)::float8 * 1000 as started,
             extract(epoch from c.started_at - p.started_at)::float8 * 1000 as handover
        from run p
        join run c on c.cause = p.id and c.task_id <> p.task_id and c.instant = p.instant
       where p.instant >= ${from} and p.instant < ${to}`);
    if (rows.length >= wanted)
      return {
        fired: rows.map(({ fired }) => fired),
        started: rows.map(({ started }) => started),
        handover: rows.map(({ handover }) => handover),
      };
    if (Date.now() - to.getTime() > patienceMs)
      throw new Error(`${beside}: ${wanted - rows.length} of ${wanted} instants have not ended`);
  }
}

function figuresOf(samples: Samples): Figures {
  const { fired, started, handover } = samples;
  return { fired: percentiles(fired), started: percentiles(started), handover: percentiles(handover) };
}

const titles: Readonly<Record<(typeof kinds)[number], string>> = {
  fired: 'Fired: ms after its instant',
  started: 'Run started: ms after its instant',
  handover: 'Hand-over: ms from the end of a parent to the start of its child',
};

function reportResults(
  report: Report,
  alone: Figures,
  beside: ReadonlyMap<HarmName, Figures>,
  worked: ReadonlyMap<HarmName, number>,
): HarmResult {
  const aims: Aim[] = [];
  for (const kind of kinds) {
    const row = (title: string, p: Percentiles): string[] => [
      title,
      String(p.n),
      ...[p.p50, p.p90, p.p99, p.max].map(figure),
      ...[p.p50 / alone[kind].p50, p.p99 / alone[kind].p99].map(figure),
    ];
    report.line(titles[kind]);
    report.table(
      ['', 'n', 'p50', 'p90', 'p99', 'max', 'p50 ÷ alone', 'p99 ÷ alone'],
      [row('alone', alone[kind]), ...[...beside].map(([name, p]) => row(harms[name].title, p[kind]))],
    );
  }
  for (const [name, figures] of beside) {
    if (harms[name].isComparison === true) continue;
    for (const kind of ['fired', 'handover'] as const) {
      const below = Number((2 * alone[kind].p99 + slackMs).toPrecision(3));
      aims.push(aim(`${name}: ${kind}, p99`, figures[kind].p99, { below }, ' ms'));
    }
  }
  const flooded = worked.get('flooded');
  if (flooded !== undefined) report.line(`Meanwhile the flooded neighbour ended ${figure(flooded)} runs a second.\n`);
  const byName = Object.fromEntries(
    [['alone', alone] as const, ...beside].flatMap(([name, figures]) =>
      kinds.map((kind) => [`${name} ${kind}`, figures[kind]]),
    ),
  );
  return {
    rate: null,
    raw: null,
    ratio: null,
    percentiles: byName,
    aims,
    details: { worked: Object.fromEntries(worked) },
  };
}
