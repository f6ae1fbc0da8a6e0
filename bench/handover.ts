/**
 * `bench -- handover`: on an idle system, the time from a worker's report of a parent run to its claim of the child run.
 * A job of two tasks is fired again and again; each firing waits until the previous one has come to rest.
 */
import { newId } from '../src/kernel/id.ts';
import type { Address } from '../src/postgres/address.ts';
import { overNetwork } from '../src/worker/transport.ts';
import { measureCommits, repeated } from './commits.ts';
import { type Hops, measureHops } from './hops.ts';
import { startInProcess } from './in-process.ts';
import type { Options } from './options.ts';
import { startPairs, type Wire } from './pairs.ts';
import { type Percentiles, percentiles } from './percentiles.ts';
import { startUp } from './product.ts';
import { profilingSettings } from './profile.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { type Server, startServer } from './server.ts';
import { controlDatabase, openTenant, tenantDatabase } from './tenant.ts';

const warmUps = 50;

export async function handover(options: Options, report: Report): Promise<Result> {
  const server = await startServer(options, options.profile === undefined ? {} : profilingSettings);
  report.progress('worker in-process');
  const inside = await inProcess(server, options);
  report.progress('worker over HTTP');
  const { samples: outside, request } = await overHttp(server, options);
  const commit = await measureCommits(server.address(controlDatabase), options);
  report.progress('a chain of 100 in `up`');
  const hops = await measureHops(server, options, report);
  await server.stop();
  report.line('Parent finished → child started, on an idle system, in ms');
  report.table(
    ['worker', 'n', 'p50', 'p90', 'p99', 'max'],
    Object.entries({
      'in-process': inside,
      'over HTTP': outside,
      'for comparison: one row committed': commit,
      'an empty HTTP request': request,
    }).map(([name, p]) => [name, p.n, ...[p.p50, p.p90, p.p99, p.max].map(figure)]),
  );
  reportHops(hops, report);
  const aims = [
    aim('hand-over in-process, p50, against a commit', inside.p50 / commit.p50, { atMost: 2.5 }, ' ×'),
    aim('the same, p99', inside.p99 / commit.p99, { atMost: 4 }, ' ×'),
    aim(
      'over HTTP, p50, against a commit and a request',
      outside.p50 / (commit.p50 + request.p50),
      { atMost: 2 },
      ' ×',
    ),
    aim('the same, p99', outside.p99 / (commit.p99 + request.p99), { atMost: 4 }, ' ×'),
    aim('processor time per hop, all processes', hops.cpu.millrace + hops.cpu.postgres, { below: 4 }, ' ms'),
  ];
  return {
    rate: null,
    raw: null,
    ratio: null,
    percentiles: { inProcess: inside, overHttp: outside, commit, request, hop: hops.ms },
    aims,
    details: { cpuPerHop: hops.cpu },
  };
}

function reportHops({ ms, cpu }: Hops, report: Report): void {
  report.line('A chain of 100 tasks in `up`, on an idle system, in ms per hop');
  report.table(
    ['', 'chains', 'p50', 'max', 'processor time of Millrace', 'of PostgreSQL'],
    [['hop', ms.n, ...[ms.p50, ms.max, cpu.millrace, cpu.postgres].map(figure)]],
  );
}

async function inProcess(server: Server, options: Options): Promise<Percentiles> {
  const control = await freshControl(server);
  const product = await startInProcess(server.home, control);
  const samples = await measure(server, control, { carry: product.carry, url: 'http://in-process', key: '-' }, options);
  await product.stop();
  return samples;
}

/** The product runs in a process of its own; this process is the worker. */
async function overHttp(
  server: Server,
  options: Options,
): Promise<{ readonly samples: Percentiles; readonly request: Percentiles }> {
  const control = await freshControl(server);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: false });
  const { key } = await up.call('POST /api/keys', { body: { name: 'bench', role: 'worker' } });
  const carry = overNetwork();
  const samples = await measure(server, control, { carry, url: up.url, key }, options);
  const empty = {
    url: new URL('/internal/definitions', up.url),
    key,
    body: { worker: newId(), incarnation: 1, items: [] },
  };
  const request = await repeated(options, async () => {
    const answer = await carry(empty, new AbortController().signal);
    if ('made' in answer || answer.status !== 200) throw new Error('an empty request was refused');
  });
  await up.stop();
  return { samples, request };
}

async function freshControl(server: Server): Promise<Address> {
  await server.drop(tenantDatabase);
  return server.fresh(controlDatabase);
}

async function measure(
  server: Server,
  control: Address,
  wire: Wire,
  { seconds, quick }: Options,
): Promise<Percentiles> {
  const tenant = await openTenant(control, server.address(tenantDatabase));
  const pairs = await startPairs(wire, tenant);
  await pairs.handOver({ count: quick ? 5 : warmUps });
  const samples = await pairs.handOver({ ms: seconds * 1_000 });
  await tenant.close();
  await pairs.stop();
  return percentiles(samples);
}
