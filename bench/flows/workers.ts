/**
 * Part of `bench -- flows`: three tasks in a row on worker processes, once as a flow and once as a job, both through `millrace up` and
 * with the same functions. Each side has a number of executions, or instants, to bring to their end.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../../src/kernel/sql.ts';
import { atEnd } from '../ending.ts';
import { startUp, startWorker, type Up } from '../product.ts';
import { statusNumbers } from '../../src/flows/executions/memory.ts';
import type { Options } from '../options.ts';
import { mean } from '../percentiles.ts';
import { aim, figure, type PartResult, type Report } from '../report.ts';
import type { Server } from '../server.ts';
import { controlDatabase, openTenant, type Tenant, tenantDatabase } from '../tenant.ts';

const workers = 2;
const places = 64;
const turns = 3;
/** Executions of one turn. Each has three runs. */
const perTurn = { usual: 1_500, quick: 20 } as const;
const warmUp = { usual: 200, quick: 5 } as const;
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

export async function measureWorkers(server: Server, { quick }: Options, report: Report): Promise<PartResult> {
  const [size, warmUps] = quick ? [perTurn.quick, warmUp.quick] : [perTurn.usual, warmUp.usual];
  const control = await server.fresh(controlDatabase);
  await server.drop(tenantDatabase);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: false });
  const tenant = await openTenant(control, server.address(tenantDatabase));
  await tenant.apply([job]);
  await up.call('POST /api/flows', { body: JSON.stringify(flow) });
  const stopWorkers = await startWorkers(up);
  await runJob(tenant, warmUps, 0);
  await runFlow(up, tenant, warmUps);
  const rates = { flow: [] as number[], job: [] as number[] };
  for (let turn = 0; turn < (quick ? 1 : turns); turn++) {
    rates.flow.push(await runFlow(up, tenant, size));
    rates.job.push(await runJob(tenant, size, warmUps + turn * size));
    report.progress(
      `on workers: ${figure(rates.flow.at(-1) ?? 0)} executions/s, ${figure(rates.job.at(-1) ?? 0)} instants/s`,
    );
  }
  await verify(tenant);
  await stopWorkers();
  await tenant.close();
  await up.stop();
  report.line(`Three tasks in a row on ${workers} worker processes`);
  report.table(
    ['', 'per second', 'least', 'most'],
    [
      ['executions of a flow', ...spread(rates.flow)],
      ['instants of a job', ...spread(rates.job)],
    ],
  );
  const ratio = mean(rates.flow) / mean(rates.job);
  return {
    aims: [aim('the flow on workers, against a job of three tasks', ratio, { atLeast: 0.5 }, ' ×')],
    details: rates,
  };
}

function spread(rates: readonly number[]): string[] {
  return [mean(rates), Math.min(...rates), Math.max(...rates)].map(figure);
}

/** Fails if an execution or a run has ended in another way than well. */
async function verify({ db }: Tenant): Promise<void> {
  const { executions, runs } = await db.one<{ executions: number; runs: number }>(sql`
    select (select count(*) from execution where status <> ${statusNumbers.done})::integer as executions,
           (select count(*) from run where state <> 'success')::integer as runs`);
  if (executions + runs > 0) throw new Error(`${executions} executions and ${runs} runs have not succeeded`);
}

async function startWorkers(up: Up): Promise<() => Promise<void>> {
  const functions = await writeFunctions();
  const { key } = await up.call('POST /api/keys', { body: { name: 'bench', role: 'worker' } });
  const options = { url: up.url, key, places, functions };
  const started = await Promise.all(Array.from({ length: workers }, () => startWorker(options)));
  return async () => void (await Promise.all(started.map((worker) => worker.stop())));
}

/** In a folder that all may read: functions run as another user where the worker is root. */
async function writeFunctions(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-functions-'));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755);
  const file = join(folder, 'functions.mjs');
  await writeFile(file, program);
  return file;
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
