/**
 * The bare commit that other figures are compared with: the shortest time in which this machine makes a change durable. That time
 * changes from second to second on a machine that others use, so a benchmark of single steps takes turns with it (`openCommits`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { type Address, clientConfig } from '../src/postgres/address.ts';
import { atEnd } from './ending.ts';
import { type Percentiles, percentiles } from './percentiles.ts';

/** Long enough that every sweep and poll has settled, short enough for a few hundred samples. */
export const restMs = 15;

export interface Commits {
  /** Commits one row. */
  readonly make: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** A bare connection that commits one row at a time. */
export async function openCommits(address: Address): Promise<Commits> {
  const client = new Client(clientConfig(address, 'millrace bench commits'));
  await client.connect();
  await client.query('create table if not exists bench_commit (n integer)');
  const insert = { name: 'commit', text: 'insert into bench_commit values (1)' };
  return {
    make: async () => void (await client.query(insert)),
    close: atEnd(() => client.end()),
  };
}

/** One row at a time, with a rest after each. */
export async function measureCommits(address: Address, options: { readonly quick: boolean }): Promise<Percentiles> {
  return percentiles(await commitTimes(address, options));
}

/** The milliseconds of each. */
export async function commitTimes(address: Address, options: { readonly quick: boolean }): Promise<number[]> {
  const commits = await openCommits(address);
  const taken = await repeated(options, commits.make);
  await commits.close();
  return taken;
}

/** The milliseconds that the work takes. */
export async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function repeated({ quick }: { readonly quick: boolean }, work: () => Promise<void>): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < (quick ? 5 : 300); i++) {
    samples.push(await timed(work));
    await sleep(restMs);
  }
  return samples;
}
