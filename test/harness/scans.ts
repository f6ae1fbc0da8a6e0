/** How statements read large tables: the scans of a plan, and the rows that each scan reads. */
import { escapeLiteral, type Pool } from 'pg';
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

/** Runs the work and returns the statements that it sent. */
export async function statementsOf(db: Db, work: (db: Db) => Promise<unknown>): Promise<Sql[]> {
  const statements: Sql[] = [];
  const record = (query: Sql): Sql => {
    statements.push(query);
    return query;
  };
  await work({
    ...db,
    rows: (query) => db.rows(record(query)),
    one: (query) => db.one(record(query)),
    maybeOne: (query) => db.maybeOne(record(query)),
  });
  return statements;
}

/** A repeated statement may get a generic plan, so both kinds of plan must be good. */
export const planModes = ['force_custom_plan', 'force_generic_plan'] as const;
type PlanMode = (typeof planModes)[number];

/** The scans of these tables with their row counts, by the custom or the generic plan of a statement. */
export async function scansOf(
  pool: Pool,
  tables: ReadonlySet<string>,
  statement: Sql,
  mode: PlanMode,
): Promise<Scan[]> {
  const walk = (node: Node): Scan[] => {
    const table = node['Relation Name']?.replace(/_\d+$/, '') ?? '';
    const read = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
    const own = tables.has(table) && read > 0 ? [{ type: node['Node Type'], table, read }] : [];
    return [...own, ...(node.Plans ?? []).flatMap(walk)];
  };
  return walk(await explain(pool, statement, mode));
}

/** Prepares the statement first: `explain` alone always makes a custom plan, only `execute` follows the mode. */
async function explain(pool: Pool, statement: Sql, mode: PlanMode): Promise<Node> {
  const { text, values } = statement.compile();
  const client = await pool.connect();
  try {
    await client.query(`set plan_cache_mode = ${mode}`);
    await client.query(`prepare explained as ${text}`);
    const given = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`;
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(
      `explain (analyze, format json) execute explained${given}`,
    );
    const plan = rows[0]?.['QUERY PLAN'][0].Plan;
    if (plan === undefined) throw new Error('explain returned no plan');
    return plan;
  } finally {
    // closing the connection drops the setting and the prepared statement
    client.release(true);
  }
}

const literal = (value: unknown): string => (value === null ? 'null' : escapeLiteral(textOf(value)));

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `{${value.map((item) => (item === null ? 'null' : quote(textOf(item)))).join(',')}}`;
  return String(value);
}

const quote = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
