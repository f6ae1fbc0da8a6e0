/** The bare commit that other figures are compared with: the shortest time in which this machine makes a change durable. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';
import { type Percentiles, percentiles } from './percentiles.ts';

/** Long enough that every sweep and poll has settled, short enough for a few hundred samples. */
export const restMs = 15;

/** One row at a time by a bare connection, with a rest after each. */
export function measureCommits(address: Address, options: { readonly quick: boolean }): Promise<Percentiles> {
  return withClient(address, async (client) => {
    await client.query('create table if not exists bench_commit (n integer)');
    const insert = { name: 'commit', text: 'insert into bench_commit values (1)' };
    return repeated(options, async () => void (await client.query(insert)));
  });
}

export async function repeated(
  { quick }: { readonly quick: boolean },
  work: () => Promise<void>,
): Promise<Percentiles> {
  const samples: number[] = [];
  for (let i = 0; i < (quick ? 5 : 300); i++) {
    const startedAt = performance.now();
    await work();
    samples.push(performance.now() - startedAt);
    await sleep(restMs);
  }
  return percentiles(samples);
}
