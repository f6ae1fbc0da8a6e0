/** One workload on fresh databases: the product with its workers, the load on it, and the raw writer for comparison. */
import { sql } from '../src/kernel/sql.ts';
import { type Load, makeLoad } from './load.ts';
import type { Options } from './options.ts';
import { type Program, startUp, startWorker, type Up } from './product.ts';
import { openRaw, type RawWriter, type RowsPerThousand } from './raw.ts';
import { type RowCounts, rowCounts } from './row-counts.ts';
import type { Server } from './server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from './tenant.ts';
import type { Workload } from './workloads.ts';

/** `profile` is the folder that receives Node's CPU profiles. */
export type StageOptions = Pick<Options, 'quick' | 'workers' | 'profile'>;

export interface Stage {
  readonly up: Up;
  readonly workers: readonly Program[];
  readonly tenant: Tenant;
  readonly load: Load;
  readonly raw: RawWriter;
  /** Runs the load for that long to fill caches, and counts the rows that the product writes per 1,000 runs. */
  warmUp(ms: number): Promise<RowsPerThousand>;
  /** Stops everything. Returns the rows that the product and the raw writer have written. */
  clear(): Promise<{ readonly product: RowCounts; readonly raw: RowCounts }>;
}

const rawDatabase = 'bench_raw';
/** Enough places that they never limit the rate: a claim takes at most 1,000 runs. */
const places = { inProcess: 1_000, overHttp: 500 };

export async function setStage(server: Server, workload: Workload, options: StageOptions): Promise<Stage> {
  const control = await server.fresh(controlDatabase);
  await server.drop(tenantDatabase);
  const up = await startUp({
    home: server.home,
    databaseUrl: control.url,
    worker: options.workers === 0,
    places: places.inProcess,
    profileTo: options.profile,
  });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  await tenant.apply(workload.documents);
  const workers = await startWorkers(up, options);
  const load = await makeLoad({ up, tenant, workload, outstanding: outstanding(options) });
  const raw = await openRaw(await server.fresh(rawDatabase));
  const stage = { up, workers, tenant, load, raw };
  return {
    ...stage,
    warmUp: (ms) => warmUp(stage, ms),
    async clear() {
      await verify(stage);
      await Promise.all([raw.close(), tenant.close(), ...workers.map((worker) => worker.stop())]);
      await up.stop();
      return {
        product: await rowCounts(server.address(tenantDatabase)),
        raw: await rowCounts(server.address(rawDatabase)),
      };
    },
  };
}

function outstanding({ quick }: StageOptions): number {
  return quick ? 2_000 : 20_000;
}

async function startWorkers(up: Up, { workers, profile }: StageOptions): Promise<Program[]> {
  if (workers === 0) return [];
  const { key } = await up.call('POST /api/keys', { body: { name: 'bench', role: 'worker' } });
  const options = { url: up.url, key, places: places.overHttp, profileTo: profile };
  return Promise.all(Array.from({ length: workers }, () => startWorker(options)));
}

type Parts = Omit<Stage, 'warmUp' | 'clear'>;

async function warmUp({ load, raw, tenant }: Parts, ms: number): Promise<RowsPerThousand> {
  await load.run(ms, () => raw.sample(tenant.db));
  const { updates, inserts } = await tenant.db.one<{ updates: number; inserts: number }>(sql`
    select n_tup_upd as updates, n_tup_ins as inserts
      from pg_stat_user_tables where schemaname = 'millrace' and relname = 'token'`);
  const per = (count: number, runs: number): number => Math.round((count / Math.max(1, runs)) * 1_000);
  return {
    firings: per(load.firings(), load.asked()),
    triggerUpdates: per(load.moves(), load.asked()),
    tokenUpdates: per(updates, inserts),
  };
}

/** Fails if any run was lost: a rate without all its runs means nothing. */
async function verify({ load, tenant }: Parts): Promise<void> {
  const { unfinished, waiting } = await tenant.db.one<{ unfinished: number; waiting: number }>(sql`
    select (select count(*) from live) as unfinished, (select count(*) from token where count <> 0) as waiting`);
  const { succeeded } = await tenant.db.one<{ succeeded: number }>(sql`
    select count(*) as succeeded from run where state = 'success' and instant >= ${load.firstInstant}`);
  if (succeeded === load.asked() && unfinished === 0 && waiting === 0) return;
  const found = `${succeeded} succeeded, ${unfinished} are unfinished, ${waiting} tokens wait`;
  throw new Error(`${load.asked()} runs were due: ${found}`);
}
