/**
 * `bench -- handover`: on an idle system, the time from a worker's report of a parent run to its claim of the child run.
 * A job of two tasks is fired again and again; each firing waits until the previous one has come to rest. What it is compared with takes
 * turns with it, so that both see the same machine.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../src/kernel/id.ts';
import type { Address } from '../src/postgres/address.ts';
import { overNetwork } from '../src/worker/transport.ts';
import { openCommits, restMs, timed } from './commits.ts';
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
  const outside = await overHttp(server, options);
  report.progress('a chain of 100 in `up`');
  const hops = await measureHops(server, options, report);
  await server.stop();
  report.line('Parent finished → child started, on an idle system, in ms');
  report.table(
    ['worker', 'n', 'p50', 'p90', 'p99', 'max'],
    Object.entries({
      'in-process': inside.handOver,
      'between these: one row committed': inside.commit,
      'over HTTP': outside.handOver,
      'between those over HTTP: one row committed': outside.commit,
      'an empty HTTP request': outside.request,
    }).map(([name, p]) => [name, p.n, ...[p.p50, p.p90, p.p99, p.max].map(figure)]),
  );
  reportHops(hops, report);
  const aims = [
    aim('hand-over in-process, p50, against a commit', inside.handOver.p50 / inside.commit.p50, { atMost: 2.5 }, ' ×'),
    aim('the same, p99', inside.handOver.p99 / inside.commit.p99, { atMost: 4 }, ' ×'),
    aim(
      'over HTTP, p50, against a commit and a request',
      outside.handOver.p50 / (outside.commit.p50 + outside.request.p50),
      { atMost: 2 },
      ' ×',
    ),
    aim('the same, p99', outside.handOver.p99 / (outside.commit.p99 + outside.request.p99), { atMost: 4 }, ' ×'),
    aim('processor time per hop, all processes', hops.cpu.millrace + hops.cpu.postgres, { below: 4 }, ' ms'),
  ];
  return {
    rate: null,
    raw: null,
    ratio: null,
    percentiles: {
      inProcess: inside.handOver,
      commit: inside.commit,
      overHttp: outside.handOver,
      commitOverHttp: outside.commit,
      request: outside.request,
      hop: hops.ms,
    },
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

type Measured = Record<'handOver' | 'commit' | 'request', Percentiles>;

async function inProcess(server: Server, options: Options): Promise<Measured> {
  const control = await freshControl(server);
  const product = await startInProcess(server.home, control);
  const wire = { carry: product.carry, url: 'http://in-process', key: '-' };
  const measured = await measure(server, control, { wire, options, request: async () => {} });
  await product.stop();
  return measured;
}

/** The product runs in a process of its own; this process is the worker. */
async function overHttp(server: Server, options: Options): Promise<Measured> {
  const control = await freshControl(server);
  const up = await startUp({ home: server.home, databaseUrl: control.url, worker: false });
  const { key } = await up.call('POST /api/keys', { body: { name: 'bench', role: 'worker' } });
  const carry = overNetwork();
  const empty = {
    url: new URL('/internal/definitions', up.url),
    key,
    body: { worker: newId(), incarnation: 1, items: [] },
  };
  const request = async (): Promise<void> => {
    const answer = await carry(empty, new AbortController().signal);
    if ('made' in answer || answer.status !== 200) throw new Error('an empty request was refused');
  };
  const measured = await measure(server, control, { wire: { carry, url: up.url, key }, options, request });
  await up.stop();
  return measured;
}

async function freshControl(server: Server): Promise<Address> {
  await server.drop(tenantDatabase);
  return server.fresh(controlDatabase);
}

interface Measuring {
  readonly wire: Wire;
  readonly options: Options;
  readonly request: () => Promise<void>;
}

/** Hand-overs, commits and requests take turns, with a rest after each. */
async function measure(server: Server, control: Address, { wire, options, request }: Measuring): Promise<Measured> {
  const { seconds, quick } = options;
  const tenant = await openTenant(control, server.address(tenantDatabase));
  const pairs = await startPairs(wire, tenant);
  const commits = await openCommits(control);
  const samples: Record<'commit' | 'request', number[]> = { commit: [], request: [] };
  const takeTurns = async (): Promise<void> => {
    for (const [name, work] of [
      ['commit', commits.make],
      ['request', request],
    ] as const) {
      samples[name].push(await timed(work));
      await sleep(restMs);
    }
  };
  await pairs.handOver({ count: quick ? 5 : warmUps }, takeTurns);
  samples.commit.length = samples.request.length = 0;
  const handOvers = await pairs.handOver({ ms: seconds * 1_000 }, takeTurns);
  await commits.close();
  await tenant.close();
  await pairs.stop();
  return {
    handOver: percentiles(handOvers),
    commit: percentiles(samples.commit),
    request: percentiles(samples.request),
  };
}
