/** Inserts rows like those of the product: the keys are given, all other columns are copied from a row that the product wrote. */
import type { ClientBase } from 'pg';

export interface Copies {
  readonly table: string;
  /** A table, or a select in brackets, with one row. */
  readonly sample: string;
  /** Column → expression over `from`. */
  readonly given: Readonly<Record<string, string>>;
  readonly from: string;
}

/** Builds the statement that inserts one row per row of `from`. */
export async function copyStatement(client: ClientBase, { table, sample, given, from }: Copies): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
    [table],
  );
  const columns = rows.map(({ name }) => `"${name}"`);
  const values = rows.map(({ name }) => given[name] ?? `s."${name}"`);
  return `insert into ${table} (${columns.join(', ')}) select ${values.join(', ')} from ${from}, ${sample} s`;
}

const eventsPerPartition = 1_000_000;

/** Events are partitioned by number. Code that inserts them without the product's functions must add the partitions first. */
export async function addEventPartitions(client: ClientBase, events: number): Promise<void> {
  const { rows } = await client.query<{ last: string }>('select last_value::text as last from event_seq');
  const last = Number(rows[0]?.last);
  const newest = Math.floor((last + events) / eventsPerPartition);
  for (let number = Math.floor(last / eventsPerPartition); number <= newest; number++) {
    const known = await client.query<{ found: boolean }>(`select to_regclass($1) is not null as found`, [
      `event_${number}`,
    ]);
    if (known.rows[0]?.found !== true) await client.query('select add_event_partition($1)', [number]);
  }
}
