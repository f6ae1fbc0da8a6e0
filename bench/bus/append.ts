/**
 * *Append*, the best that PostgreSQL can do for the same rows: one connection writes groups of 1,000 into `bus_event` with its
 * indexes, in a database beside the tenant's. It takes no lock and checks nothing.
 */
import { Client } from 'pg';
import { engine } from '../../src/engine/engine.ts';
import { type Address, addressOfUrl, clientConfig } from '../../src/postgres/address.ts';
import { migrateTenant } from '../../src/tenants/install.ts';
import { atEnd } from '../ending.ts';
import { makeEvent, type ParsedEvent, rowOf } from './events.ts';

export interface Row {
  readonly body: string;
  readonly hash: number;
}

export interface Appender {
  /** Writes the rows in one commit. Returns the number before the first. */
  append(rows: readonly Row[]): Promise<number>;
  close(): Promise<void>;
}

const rowsPerPartition = 4_000_000;
/** The first partition of each user of the database is its own: 0 is the writer's, 100 the bare server's. */
export const firstPartitions = { append: 0, bare: 100 } as const;

const insert = `
  insert into bus_event (seq, topic_id, key_hash, target, at, body)
  select $1::bigint + e.n, 1, e.hash, null, $2::timestamptz, e.body || ',"id":"' || $1::bigint + e.n || '"}'
    from unnest($3::integer[], string_to_array($4, e'\\n')) with ordinality as e (hash, body, n)`;

export async function prepareTables(address: Address): Promise<void> {
  await migrateTenant(address, engine);
}

export async function openAppender(url: string, firstPartition: number): Promise<Appender> {
  const client = new Client(clientConfig(addressOfUrl(url), 'millrace bench append'));
  await client.connect();
  await client.query(`set search_path to millrace; set timezone to 'UTC'`);
  let last = firstPartition * rowsPerPartition;
  let newest = 0;
  return {
    async append(rows) {
      const base = last;
      last += rows.length;
      const partition = Math.floor(last / rowsPerPartition);
      if (partition > newest && partition > 0) await client.query('select add_bus_partition($1)', [partition]);
      newest = Math.max(newest, partition);
      const hashes = `{${rows.map(({ hash }) => hash).join(',')}}`;
      const bodies = rows.map(({ body }) => body).join('\n');
      const values = [base, new Date().toISOString(), hashes, bodies];
      await client.query({ name: 'append', text: insert, values });
      return base;
    },
    close: atEnd(() => client.end()),
  };
}

const rowsPerGroup = 1_000;

/** Writes groups for that long. The rows are made before. */
export async function appendFor(appender: Appender, ms: number): Promise<{ runs: number; perSecond: number }> {
  const t = Date.now();
  const rows = Array.from({ length: rowsPerGroup }, (_, i) =>
    rowOf('orders', JSON.parse(makeEvent(i)) as ParsedEvent, t),
  );
  const startedMs = performance.now();
  let runs = 0;
  for (; performance.now() - startedMs < ms; runs += rowsPerGroup) await appender.append(rows);
  return { runs, perSecond: (runs / (performance.now() - startedMs)) * 1_000 };
}
