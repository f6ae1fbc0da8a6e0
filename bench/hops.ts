/**
 * The second part of `bench -- handover`: a chain of a hundred tasks in a real `up`, fired once at a time on an idle system.
 * Reports the time per hop, and the processor time per hop of all processes: `up`, its host and PostgreSQL.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../src/kernel/sql.ts';
import type { Options } from './options.ts';
import { type Percentiles, percentiles } from './percentiles.ts';
import { cpuOfTrees } from './processes.ts';
import { startUp, type Up } from './product.ts';
import { printProfile, startProfile } from './profile.ts';
import type { Report } from './report.ts';
import type { Server } from './server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from './tenant.ts';
import { chainOf } from './workloads.ts';

export interface Hops {
  /** Milliseconds per hop, a sample for each chain. */
  readonly ms: Percentiles;
  /** Milliseconds of processor time per hop, of Millrace and of PostgreSQL. */
  readonly cpu: { readonly millrace: number; readonly postgres: number };
}

const tasks = 100;
const warmUps = 3;
const pollMs = 20;
const stuckMs = 30_000;

export async function measureHops(server: Server, options: Options, report: Report): Promise<Hops> {
  const { quick, seconds, profile } = options;
  await server.drop(tenantDatabase);
  const control = await server.fresh(controlDatabase);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: true, profileTo: profile });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  await tenant.apply([{ ...chainOf(tasks), name: 'hops' }]);
  const { id } = await tenant.db.one<{ id: string }>(sql`select id from trigger`);
  const firstMs = Date.now() - 24 * 3_600_000;
  let fired = 0;
  const chain = (): Promise<number> => runChain(up, tenant, { triggerId: id, instantMs: firstMs + fired++ * 1_000 });
  for (let i = 0; i < (quick ? 1 : warmUps); i++) await chain();
  if (profile !== undefined) await startProfile(tenant.db);
  const roots = [up.pid, ...(server.pid === undefined ? [] : [server.pid])];
  const before = await cpuOfTrees(roots);
  const samples: number[] = [];
  for (const until = performance.now() + seconds * 1_000; performance.now() < until; ) samples.push(await chain());
  const after = await cpuOfTrees(roots);
  if (profile !== undefined) await printProfile(tenant.db, samples.length * tasks, report);
  const perHop = (root: number): number =>
    (((after[root] ?? Number.NaN) - (before[root] ?? 0)) * 1_000) / (samples.length * tasks);
  await tenant.close();
  await up.stop();
  return { ms: percentiles(samples), cpu: { millrace: perHop(0), postgres: perHop(1) } };
}

/** Returns the milliseconds per hop, by the clock of the worker. */
async function runChain(
  up: Up,
  tenant: Tenant,
  firing: { readonly triggerId: string; readonly instantMs: number },
): Promise<number> {
  const applied = async (): Promise<number> => (await up.metrics()).get('millrace_reports_applied_total') ?? 0;
  const enough = (await applied()) + tasks;
  await tenant.fire([firing]);
  for (const startedAt = performance.now(); (await applied()) < enough; await sleep(pollMs)) {
    if (performance.now() - startedAt > stuckMs) throw new Error(`a chain has not ended within ${stuckMs / 1_000} s`);
  }
  const { ms } = await tenant.db.one<{ ms: number }>(sql`
    select extract(epoch from max(started_at) - min(started_at))::float8 * 1000 as ms
      from run where instant = ${new Date(firing.instantMs)}`);
  return ms / (tasks - 1);
}
