/**
 * `bench -- errands`: pushes no-op errands and drains them with the runner, in batches of 500, and the same with graphile-worker on
 * the same server, turn by turn. Then once more with a foreign transaction held open, and the latency of single errands on an
 * idle queue, from the push to the start of the handler.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type Pool } from 'pg';
import { engine } from '../src/engine/engine.ts';
import type { Errands } from '../src/errands/contract.ts';
import { HeldErrands } from '../src/errands/held.ts';
import { errandKey } from '../src/errands/key.ts';
import { postgresErrands } from '../src/errands/postgres.ts';
import { ErrandRunner } from '../src/errands/runner.ts';
import { newId } from '../src/kernel/id.ts';
import { onPool } from '../src/kernel/sql.ts';
import { systemTime } from '../src/kernel/time.ts';
import { type Address, clientConfig } from '../src/postgres/address.ts';
import { openPool } from '../src/postgres/pool/pool.ts';
import { migrateTenant } from '../src/tenants/install.ts';
import { restMs } from './commits.ts';
import { atEnd } from './ending.ts';
import { batch, connections, openGraphile, type Rival, vacuum } from './graphile.ts';
import type { Options } from './options.ts';
import { mean, percentiles } from './percentiles.ts';
import { aim, figure, type Report, type Result } from './report.ts';
import { startServer } from './server.ts';

const rounds = 3;

interface Rates {
  readonly push: number;
  readonly drain: number;
}

export async function errands(options: Options, report: Report): Promise<Result> {
  const count = options.runs || (options.quick ? 1_000 : 50_000);
  const server = await startServer(options);
  const address = await server.fresh('bench_errands');
  const rivalAddress = await server.fresh('bench_rival');
  await migrateTenant(address, engine);
  const own = openOwn(address);
  const rival = await openGraphile(rivalAddress);
  const plain = await takeTurns({ own, rival, count, report }, options.quick ? 1 : rounds);
  const end = await holdSnapshots([address, rivalAddress]);
  const crowded = await takeTurns({ own, rival, count, report }, options.quick ? 1 : 2);
  await end();
  report.progress('latency');
  const samples = options.quick ? 5 : 300;
  const idle = percentiles(await ownLatencies(own.errands, samples));
  const rivalIdle = percentiles(await rival.latencies(samples, restMs));
  await own.close();
  await rival.close();
  await server.stop();
  const ratio = plain.own.drain / plain.rival.drain;
  report.table(
    [`${count.toLocaleString('en-US')} errands`, 'pushed/s', 'drained/s', 'rival pushed/s', 'rival drained/s', 'ratio'],
    [rowOf('plain', plain), rowOf('foreign transaction', crowded)],
  );
  report.table(
    ['idle, push → start', 'p50 ms', 'p99 ms'],
    [
      ['errands', figure(idle.p50), figure(idle.p99)],
      ['graphile-worker', figure(rivalIdle.p50), figure(rivalIdle.p99)],
    ],
  );
  const aims = [
    aim('drained, against graphile-worker', ratio, { atLeast: 2 }, ' ×'),
    aim('the same with a foreign transaction', crowded.own.drain / crowded.rival.drain, { atLeast: 2 }, ' ×'),
  ];
  const { drain: rate } = plain.own;
  return { rate, raw: plain.rival.drain, ratio, percentiles: { idle, rivalIdle }, aims, details: { plain, crowded } };
}

interface Own {
  readonly pool: Pool;
  readonly errands: Errands;
  readonly vacuum: () => Promise<unknown>;
  close(): Promise<void>;
}

function openOwn(address: Address): Own {
  const options = { schema: 'millrace', application: 'millrace bench', max: connections, allowPooler: false } as const;
  const pool = openPool({ address, ...options, onError: () => {} });
  return {
    pool,
    errands: postgresErrands(onPool(pool)),
    vacuum: () => pool.query(`${vacuum} errand`),
    close: atEnd(() => pool.end()),
  };
}

interface Stage {
  readonly own: Own;
  readonly rival: Rival;
  readonly count: number;
  readonly report: Report;
}

interface Both {
  readonly own: Rates;
  readonly rival: Rates;
}

async function takeTurns({ own, rival, count, report }: Stage, turns: number): Promise<Both> {
  const owns: Rates[] = [];
  const rivals: Rates[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const keys = Array.from({ length: count }, (_, i) => errandKey('noop', turn, i));
    owns.push(
      await ratesOf(
        keys,
        (part) =>
          own.errands.push(
            'aux',
            part.map((key) => ({ key })),
          ),
        own.vacuum,
        () => drainOwn(own.errands, count),
      ),
    );
    rivals.push(
      await ratesOf(
        keys,
        (part) => rival.push(part),
        rival.vacuum,
        () => rival.drain(count),
      ),
    );
    report.progress(`turn ${turn + 1}: ${figure(owns.at(-1)?.drain ?? 0)} and ${figure(rivals.at(-1)?.drain ?? 0)}/s`);
  }
  return { own: averageOf(owns), rival: averageOf(rivals) };
}

async function ratesOf(
  keys: readonly string[],
  push: (part: readonly string[]) => Promise<unknown>,
  vacuum: () => Promise<unknown>,
  drain: () => Promise<void>,
): Promise<Rates> {
  const startedMs = performance.now();
  for (let i = 0; i < keys.length; i += batch) await push(keys.slice(i, i + batch));
  const pushMs = performance.now() - startedMs;
  // what died in the turn before is removed, and plans are made for a full table
  await vacuum();
  const drainedFromMs = performance.now();
  await drain();
  const perSecond = (ms: number): number => (keys.length / ms) * 1_000;
  return { push: perSecond(pushMs), drain: perSecond(performance.now() - drainedFromMs) };
}

async function drainOwn(all: Errands, count: number): Promise<void> {
  let ran = 0;
  let finished = (): void => {};
  const done = new Promise<void>((resolve) => {
    finished = resolve;
  });
  const runner = makeRunner(all, () => {
    ran += 1;
    if (ran === count) finished();
  });
  await runner.service.start();
  await done;
  await runner.service.stop();
}

function makeRunner(all: Errands, onRun: () => void): ErrandRunner {
  return new ErrandRunner({
    errands: all,
    queue: 'aux',
    worker: newId(),
    held: new HeldErrands(),
    places: batch,
    time: systemTime,
    onError: (error) => {
      throw error;
    },
    handlers: {
      noop: async () => {
        onRun();
        return undefined;
      },
    },
  });
}

async function ownLatencies(all: Errands, samples: number): Promise<number[]> {
  const times: number[] = [];
  let begun = (): void => {};
  const runner = makeRunner(all, () => begun());
  await runner.service.start();
  for (let i = 0; i < samples; i++) {
    const started = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const pushedMs = performance.now();
    await all.push('aux', [{ key: errandKey('noop', i) }]);
    runner.wake();
    await started;
    times.push(performance.now() - pushedMs);
    await sleep(restMs);
  }
  await runner.service.stop();
  return times;
}

/** Transactions elsewhere that may still see every row that dies from now on. */
async function holdSnapshots(addresses: readonly Address[]): Promise<() => Promise<unknown>> {
  const clients = addresses.map((address) => new Client(clientConfig(address, 'a foreign transaction')));
  for (const client of clients) {
    await client.connect();
    await client.query('begin isolation level repeatable read; select count(*) from pg_class');
  }
  return atEnd(async () => void (await Promise.all(clients.map((client) => client.end()))));
}

function averageOf(rates: readonly Rates[]): Rates {
  return { push: mean(rates.map(({ push }) => push)), drain: mean(rates.map(({ drain }) => drain)) };
}

function rowOf(name: string, { own, rival }: Both): string[] {
  const ratio = own.drain / rival.drain;
  return [name, ...[own.push, own.drain, rival.push, rival.drain, ratio].map(figure)];
}
