/**
 * Harms that can befall a tenant's database, inflicted in plain SQL while the product runs. Each `begin` resolves once the
 * harm is in place; it lasts until it is undone. The database is dropped afterwards.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { clientConfig } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';
import { locks } from '../src/postgres/locks.ts';
import { atEnd } from './ending.ts';
import type { Up } from './product.ts';
import type { Server } from './server.ts';

interface Harmed {
  readonly server: Server;
  readonly up: Up;
  /** Name of the tenant and of its database. */
  readonly name: string;
  /** Number of ready runs that a flood adds. */
  readonly flood: number;
}

export interface Harm {
  readonly title: string;
  /** A reference without any part of ours: what a busy server costs by itself. */
  readonly isComparison?: true;
  /** Inflicts the harm and returns a function that undoes it. */
  readonly begin: (harmed: Harmed) => Promise<() => Promise<void>>;
}

const nothing = async (): Promise<void> => {};

export const harmNames = ['healthy', 'flooded', 'locked', 'unreachable', 'corrupt', 'crashing', 'busy'] as const;
export type HarmName = (typeof harmNames)[number];

export const harms: Readonly<Record<HarmName, Harm>> = {
  healthy: { title: 'neighbour does the same', begin: async () => nothing },
  flooded: { title: 'neighbour is flooded', begin: flood },
  locked: { title: 'neighbour hangs (table locked)', begin: lock },
  unreachable: { title: 'neighbour refuses connections', begin: refuse },
  corrupt: { title: 'neighbour lost its tables', begin: corrupt },
  crashing: { title: 'neighbour’s scheduler is killed again and again', begin: crash },
  busy: { title: 'for comparison: a foreign database is busy', isComparison: true, begin: writeElsewhere },
};

/** Makes all runs of the flood ready in one commit. */
async function flood({ server, name, flood: runs }: Harmed): Promise<() => Promise<void>> {
  await withClient(server.address(name), async (client) => {
    await client.query('set search_path to millrace');
    await client.query(
      `insert into live (id, task_id, instant, version, attempt, priority, lane, rank, queued_at)
       select new_id(), k.id, timestamptz '2001-01-01' + n * interval '1 second', k.version, 1, 'normal', k.lane, at, at
         from generate_series(1, $1::integer) n
         cross join lateral (select clock_timestamp() as at) t
         cross join (select * from task where name = 'flood') k`,
      [runs],
    );
    // the server's own work on a million new rows is not to be measured
    await client.query('analyze live');
    await client.query('checkpoint');
  });
  return nothing;
}

async function lock({ server, name }: Harmed): Promise<() => Promise<void>> {
  const client = new Client(clientConfig(server.address(name), 'bench'));
  client.on('error', () => {});
  await client.connect();
  await client.query('begin; lock table millrace.live, millrace.token, millrace.trigger in access exclusive mode');
  return atEnd(() => client.end());
}

async function refuse({ server, name }: Harmed): Promise<() => Promise<void>> {
  await withClient(server.address('postgres'), async (client) => {
    await client.query(`alter database ${name} allow_connections false`);
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
  });
  return nothing;
}

async function corrupt({ server, name }: Harmed): Promise<() => Promise<void>> {
  await withClient(server.address(name), (client) =>
    client.query('drop table millrace.live, millrace.token, millrace.trigger cascade'),
  );
  return nothing;
}

const killEveryMs = 100;
const restartEveryMs = 1_000;

/** Kills the holder of the scheduler's lock every 100 ms. An order to start every second cuts the growing backoff short. */
async function crash({ server, up, name }: Harmed): Promise<() => Promise<void>> {
  const client = new Client(clientConfig(server.address('postgres'), 'bench'));
  client.on('error', () => {});
  await client.connect();
  const over = new AbortController();
  const repeat = async (everyMs: number, work: () => Promise<unknown>): Promise<void> => {
    for (; !over.signal.aborted; await sleep(everyMs)) await work();
  };
  const kill = (): Promise<unknown> =>
    client.query(
      `select pg_terminate_backend(pid) from pg_locks join pg_database d on d.oid = database
        where locktype = 'advisory' and datname = $1 and classid = $2 and objid = $3 and granted`,
      [name, ...locks.singleton],
    );
  const restart = (): Promise<unknown> => up.call('POST /api/tenants/{name}/start', { params: { name } });
  const working = Promise.all([repeat(killEveryMs, kill), repeat(restartEveryMs, restart)]);
  return atEnd(async () => {
    over.abort();
    await working;
    await client.end();
  });
}

/** Two connections write a thousand rows at a time, without pause, into a database that is no tenant. */
async function writeElsewhere({ server }: Harmed): Promise<() => Promise<void>> {
  const address = await server.fresh('busy');
  const over = new AbortController();
  const write = async (table: string): Promise<void> =>
    withClient(address, async (client) => {
      await client.query(`create table ${table} (id uuid primary key, at timestamptz not null, body text)`);
      await client.query(`create index on ${table} (at)`);
      while (!over.signal.aborted) {
        await client.query(`insert into ${table} select gen_random_uuid(), clock_timestamp(), repeat('x', 100)
                              from generate_series(1, 1000)`);
        await client.query(`delete from ${table} where at < clock_timestamp()`);
      }
    });
  const working = Promise.all([write('one'), write('two')]);
  return atEnd(async () => {
    over.abort();
    await working;
  });
}
