/** How statements read large tables: which scans a plan has, and how many rows each reads. */
import type { Pool } from 'pg';
import type { Db, Sql } from '../../src/kernel/sql.ts';

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Node[];
}

export interface Scan {
  readonly type: string;
  readonly table: string;
  readonly read: number;
}

/** Does it, and answers the statements that it sent. */
export async function statementsOf(db: Db, work: (db: Db) => Promise<unknown>): Promise<Sql[]> {
  const statements: Sql[] = [];
  const heard = (query: Sql): Sql => {
    statements.push(query);
    return query;
  };
  await work({
    ...db,
    rows: (query) => db.rows(heard(query)),
    one: (query) => db.one(heard(query)),
    maybeOne: (query) => db.maybeOne(heard(query)),
  });
  return statements;
}

/** How a statement reads these tables, and how many rows of them. */
export async function scansOf(pool: Pool, tables: ReadonlySet<string>, statement: Sql): Promise<Scan[]> {
  const { text, values } = statement.compile();
  const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(
    `explain (analyze, format json) ${text}`,
    values,
  );
  const walk = (node: Node): Scan[] => {
    const table = node['Relation Name']?.replace(/_\d+$/, '') ?? '';
    const read = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
    const own = tables.has(table) && read > 0 ? [{ type: node['Node Type'], table, read }] : [];
    return [...own, ...(node.Plans ?? []).flatMap(walk)];
  };
  return rows.flatMap((row) => walk(row['QUERY PLAN'][0].Plan));
}
