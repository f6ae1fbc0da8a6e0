/**
 * Part of `bench -- flows`: three tasks in a row on worker processes, once as a flow and once as a job, both through `millrace up` and
 * with the same functions. Each side has a number of executions, or instants, to bring to their end.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../../src/kernel/sql.ts';
import { startUp, startWorker, type Up } from '../product.ts';
import type { Report } from '../report.ts';
import type { Server } from '../server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from '../tenant.ts';

export interface WorkerRates {
  /** Executions of the flow, and instants of the job, per second. */
  readonly flow: number;
  readonly job: number;
}

const workers = 2;
const places = 64;
const turns = 2;
/** Executions of one turn. Each has three runs. */
const perTurn = 1_000;
const perRequest = 500;

const names = ['first', 'second', 'third'] as const;
const work = (name: string): object => ({ function: { name } });
const flow = { flow: 'on-workers', steps: names.map((task) => ({ task, ...work(task) })) };
const job = {
  name: 'on workers',
  triggers: [{ name: 'start', start: '9000-01-01T00:00:00Z', period: '1 hour' }],
  tasks: names.map((name, i) => ({
    name,
    depends: [i === 0 ? 'trigger/start' : `task/${names[i - 1] ?? ''}`],
    ...work(name),
  })),
};
const program = names.map((name) => `export const ${name} = (input) => ({ task: '${name}' });`).join('\n');

export async function measureWorkers(server: Server, report: Report): Promise<WorkerRates> {
  const control = await server.fresh(controlDatabase);
  await server.drop(tenantDatabase);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: false });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  await tenant.apply([job]);
  await up.call('POST /api/flows', { body: JSON.stringify(flow) });
  const stopWorkers = await startWorkers(up, server.home);
  await runJob(tenant, 50, 0);
  await runFlow(up, tenant, 50);
  const rates: WorkerRates[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const rate = {
      flow: await runFlow(up, tenant, perTurn),
      job: await runJob(tenant, perTurn, 100 + turn * perTurn),
    };
    rates.push(rate);
    report.progress(`on workers: ${Math.round(rate.flow)} executions/s, ${Math.round(rate.job)} instants/s`);
  }
  await stopWorkers();
  await tenant.close();
  await up.stop();
  const best = (key: keyof WorkerRates): number => Math.max(...rates.map((rate) => rate[key]));
  return { flow: best('flow'), job: best('job') };
}

async function startWorkers(up: Up, home: string): Promise<() => Promise<void>> {
  const functions = join(home, 'functions.mjs');
  await writeFile(functions, program);
  const { key } = await up.call('POST /api/keys', { body: { name: 'bench', role: 'worker' } });
  const options = { url: up.url, key, places, functions };
  const started = await Promise.all(Array.from({ length: workers }, () => startWorker(options)));
  return async () => void (await Promise.all(started.map((worker) => worker.stop())));
}

async function runFlow(up: Up, { db }: Tenant, count: number): Promise<number> {
  const ended = async (): Promise<number> => {
    const { n } = await db.one<{ n: number }>(sql`
      select count(*)::integer as n from execution where ended_at is not null`);
    return n;
  };
  const before = await ended();
  const startedMs = performance.now();
  for (let from = 0; from < count; from += perRequest) {
    const items = Array.from({ length: Math.min(perRequest, count - from) }, (_, n) => ({ input: { n } }));
    await up.call('POST /api/executions/bulk', { body: { flow: flow.flow, items } });
  }
  while ((await ended()) < before + count) await sleep(5);
  return (count / (performance.now() - startedMs)) * 1_000;
}

/** `from`: the first hour, so that no instant fires twice. */
async function runJob(tenant: Tenant, count: number, from: number): Promise<number> {
  const { db } = tenant;
  const { id } = await db.one<{ id: string }>(sql`select id from trigger where name = 'start'`);
  const ended = async (): Promise<number> => {
    const { n } = await db.one<{ n: number }>(sql`select count(*)::integer as n from run where task_id is not null`);
    return n;
  };
  const before = await ended();
  const instants = Array.from({ length: count }, (_, n) => ({
    triggerId: id,
    instantMs: Date.UTC(2001, 0, 1, from + n),
  }));
  const startedMs = performance.now();
  await tenant.fire(instants);
  while ((await ended()) < before + count * names.length) await sleep(5);
  return (count / (performance.now() - startedMs)) * 1_000;
}
