/**
 * `bench -- tenants`: measures the cost of an idle tenant, and whether many tenants delay each other. With two hundred
 * tenants of one trigger each, it reports the time until all are started, memory and connections per idle tenant, how late
 * the triggers fire when all are due at the same instants, and when their runs are done.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { withClient } from '../src/postgres/databases.ts';
import type { Options } from './options.ts';
import { type Percentiles, percentiles } from './percentiles.ts';
import { pidsBelow, proportionalBytes } from './processes.ts';
import { startUp, type Up } from './product.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { type Server, startServer } from './server.ts';
import { controlDatabase, openTenant, tenantDatabase } from './tenant.ts';

/** Longer than a pool keeps an unused connection. */
const idleMs = 15_000;
const periodMs = 5_000;
const copiesAtOnce = 4;

interface Idle {
  readonly memoryMb: number;
  readonly serverMb: number;
  readonly connections: number;
}

export async function tenants(options: Options, report: Report): Promise<Result> {
  const count = options.quick ? 5 : 200;
  const idleFor = options.quick ? 500 : idleMs;
  const server = await startServer(options);
  refuseOthers(server);
  server.reserve(...copiesOf(count));
  const control = await server.fresh(controlDatabase);
  const up = (): Promise<Up> =>
    startUp({
      home: server.home,
      databaseUrl: control.url,
      worker: true,
      env: { MILLRACE_DISCOVER: 'all', MILLRACE_MAX_BACKGROUND_WORKERS: String(count + 100) },
    });
  report.progress('one tenant, idle');
  const alone = await up();
  const firstAt = await plant(server, Date.now() + (options.quick ? 20_000 : 110_000));
  const one = await measureIdle(server, alone, idleFor);
  await alone.stop();
  report.progress(`making ${count - 1} more`);
  await copy(server, count);
  const startedAt = performance.now();
  const many = await up();
  const healthyMs = performance.now() - startedAt;
  await waitUntilStarted(many, count, report);
  const startedMs = performance.now() - startedAt;
  report.progress(`${count} tenants, idle`);
  const all = await measureIdle(server, many, idleFor);
  report.progress('their triggers');
  const instants = options.quick ? 2 : 7;
  const fired = await measureFired(server, count, firstAt, instants);
  await many.stop();
  await server.stop();
  return reportResults(report, {
    count,
    one,
    all,
    healthyMs,
    startedMs,
    missing: count * instants - fired.late.length,
    late: percentiles(fired.late),
    done: percentiles(fired.done),
  });
}

interface Measured {
  readonly count: number;
  readonly one: Idle;
  readonly all: Idle;
  readonly healthyMs: number;
  readonly startedMs: number;
  /** Number of instants that did not fire. */
  readonly missing: number;
  readonly late: Percentiles;
  readonly done: Percentiles;
}

function reportResults(
  report: Report,
  { count, one, all, healthyMs, startedMs, missing, late, done }: Measured,
): Result {
  const each = (of: (idle: Idle) => number): number => (of(all) - of(one)) / (count - 1);
  const perTenant = {
    memoryMb: each(({ memoryMb }) => memoryMb),
    serverMb: each(({ serverMb }) => serverMb),
    connections: each(({ connections }) => connections),
  };
  report.line(`${count} tenants, each with one trigger, in one \`up\``);
  report.table(
    ['', 'one tenant', `${count} tenants`, 'each further one'],
    [
      ['memory of Millrace, MB', figure(one.memoryMb), figure(all.memoryMb), perTenant.memoryMb.toFixed(2)],
      ['memory of PostgreSQL, MB', figure(one.serverMb), figure(all.serverMb), perTenant.serverMb.toFixed(2)],
      ['connections', one.connections, all.connections, perTenant.connections.toFixed(2)],
    ],
  );
  report.line('From the start of `up`, in ms');
  report.table(
    ['', 'ms'],
    [
      ['the default tenant is started', Math.round(healthyMs)],
      [`all ${count} are started`, Math.round(startedMs)],
    ],
  );
  report.line('All triggers are due at the same instants: how many ms later they fired, and their runs were done');
  report.table(
    ['', 'n', 'p50', 'p90', 'p99', 'max'],
    [
      ['fired', late.n, ...[late.p50, late.p90, late.p99, late.max].map(figure)],
      ['done', done.n, ...[done.p50, done.p90, done.p99, done.max].map(figure)],
    ],
  );
  const aims = [
    aim('connections of an idle tenant', perTenant.connections, { below: 1.05 }, ''),
    aim('memory of an idle tenant', perTenant.memoryMb, { below: 2 }, ' MB'),
    aim(`all ${count} started`, startedMs / 1_000, { below: 15 }, ' s'),
    aim('instants that did not fire', missing, { below: 1 }, ''),
    aim('runs that were not done', late.n - done.n, { below: 1 }, ''),
    aim('lateness, p99', late.p99, { below: 1_000 }, ' ms'),
  ];
  return {
    rate: null,
    raw: null,
    ratio: null,
    percentiles: { late, done },
    aims,
    details: { perTenant, healthyMs, startedMs },
  };
}

/** Applies a job with one trigger to the tenant that the others are copied from; returns its first instant. */
async function plant(server: Server, firstAt: number): Promise<number> {
  const tenant = await openTenant(server.address(controlDatabase), server.address(tenantDatabase));
  const start = new Date(firstAt).toISOString();
  const triggers = [{ name: 'tick', start, period: `${periodMs / 1_000}s` }];
  await tenant.apply([{ name: 'only', triggers, tasks: [{ name: 'task', depends: ['trigger/tick'] }] }]);
  await tenant.close();
  return firstAt;
}

async function copy(server: Server, count: number): Promise<void> {
  const left = copiesOf(count);
  const work = (): Promise<void> =>
    withClient(server.address('postgres'), async (client) => {
      for (let name = left.pop(); name !== undefined; name = left.pop())
        await client.query(`create database ${name} template ${tenantDatabase}`);
    });
  await Promise.all(Array.from({ length: copiesAtOnce }, work));
  // write out the copies now, so that the tenants' start is not charged for it
  await withClient(server.address('postgres'), (client) => client.query('checkpoint'));
}

function copiesOf(count: number): string[] {
  return Array.from({ length: count - 1 }, (_, i) => nameOf(i + 1));
}

/** Here every database of the server becomes a tenant. */
function refuseOthers({ others }: Server): void {
  if (others.length > 0)
    throw new Error(
      `tenants makes a tenant of every database, and the server of --database has ${others.join(', ')}; name another server`,
    );
}

function nameOf(number: number): string {
  return number === 0 ? tenantDatabase : `bench_${String(number).padStart(3, '0')}`;
}

async function waitUntilStarted(up: Up, count: number, report: Report): Promise<void> {
  for (;;) {
    const { items } = await up.call('GET /api/tenants');
    const started = items.filter(({ state }) => state === 'STARTED').length;
    if (started >= count) return;
    report.progress(`${started} of ${count} are started`);
    // each poll costs the product work
    await sleep(250);
  }
}

async function measureIdle(server: Server, up: Up, forMs: number): Promise<Idle> {
  await sleep(forMs);
  const connections = await withClient(server.address('postgres'), async (client) => {
    const { rows } = await client.query<{ n: number }>(`
      select count(*)::integer as n from pg_stat_activity where application_name like 'millrace%' and pid <> pg_backend_pid()`);
    return rows[0]?.n ?? 0;
  });
  const mb = async (pid: number): Promise<number> => (await proportionalBytes(await pidsBelow(pid))) / 2 ** 20;
  return { memoryMb: await mb(up.pid), serverMb: server.pid === undefined ? 0 : await mb(server.pid), connections };
}

interface Fired {
  readonly late: number[];
  readonly done: number[];
}

/** Measures `instants` instants of all tenants. A run that is not done one second before the next instant is missing. */
async function measureFired(server: Server, count: number, firstAt: number, instants: number): Promise<Fired> {
  const lastAt = firstAt + (instants - 1) * periodMs;
  await sleep(Math.max(0, lastAt - Date.now()) + periodMs - 1_000);
  const fired: Fired = { late: [], done: [] };
  for (let number = 0; number < count; number++) {
    await withClient(server.address(nameOf(number)), async (client) => {
      const { rows } = await client.query<{ late: number; done: number | null }>(
        `select extract(epoch from queued_at - instant)::float8 * 1000 as late,
                extract(epoch from finished_at - instant)::float8 * 1000 as done
           from (select instant, queued_at, finished_at from millrace.run
                 union all
                 select instant, queued_at, null from millrace.live) as found
          where instant <= $1`,
        [new Date(lastAt)],
      );
      fired.late.push(...rows.map(({ late }) => late));
      fired.done.push(...rows.flatMap(({ done }) => done ?? []));
    });
  }
  return fired;
}
