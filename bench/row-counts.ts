/** Rows written per table, from PostgreSQL's statistics. Partitions of the event log count as one table. */
import type { Address } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';

interface Written {
  readonly inserted: number;
  readonly updated: number;
  readonly deleted: number;
}

export type RowCounts = ReadonlyMap<string, Written>;

/** The counts are exact once all connections are closed. */
export function rowCounts(address: Address): Promise<RowCounts> {
  return withClient(address, async (client) => {
    const { rows } = await client.query<Written & { name: string }>(`
      select regexp_replace(relname, '^event_\\d+$', 'event') as name, sum(n_tup_ins)::float8 as inserted,
             sum(n_tup_upd)::float8 as updated, sum(n_tup_del)::float8 as deleted
        from pg_stat_user_tables
       where schemaname = 'millrace'
       group by 1
      having sum(n_tup_ins + n_tup_upd + n_tup_del) > 0
       order by 1`);
    return new Map(rows.map(({ name, ...written }) => [name, written]));
  });
}

/** Tables written at installation or when jobs and flows are applied, not when they run. */
const definitions = new Set(
  'installation migration topic project job job_version task task_edge trigger_edge flow flow_version'.split(' '),
);

/** One row per table: inserted, updated, deleted per 1,000 runs or executions of the product, then the same of the raw writer. */
export function rowTable(product: RowCounts, raw: RowCounts, counted: 'run' | 'execution'): [string, ...number[]][] {
  const [runs, rawRuns] = [product.get(counted)?.inserted ?? 0, raw.get(counted)?.inserted ?? 0];
  const per = (written: Written | undefined, of: number): number[] =>
    [written?.inserted, written?.updated, written?.deleted].map(
      (n = 0) => Math.round((n / Math.max(1, of)) * 10_000) / 10,
    );
  return [...product]
    .filter(([table]) => !definitions.has(table))
    .map(([table, written]): [string, ...number[]] => [table, ...per(written, runs), ...per(raw.get(table), rawRuns)])
    .filter(([, ...figures]) => figures.some((figure) => figure >= 0.1));
}
