/** How statements read large tables: which scans a plan has, and how many rows each reads. */
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

/** A statement that is asked again and again may get a plan for any values: both must be good. */
export const planModes = ['force_custom_plan', 'force_generic_plan'] as const;
type PlanMode = (typeof planModes)[number];

/** How a statement reads these tables, and how many rows of them, with the plan for its values or for any. */
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
  return walk(await explained(pool, statement, mode));
}

/** `explain` by itself always plans for the values; only what `execute` runs goes by the mode. */
async function explained(pool: Pool, statement: Sql, mode: PlanMode): Promise<Node> {
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
    if (plan === undefined) throw new Error('a statement without a plan');
    return plan;
  } finally {
    // what was set and prepared goes with the connection
    client.release(true);
  }
}

const literal = (value: unknown): string => (value === null ? 'null' : escapeLiteral(textOf(value)));

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value))
    return `{${value.map((item) => (item === null ? 'null' : quoted(textOf(item)))).join(',')}}`;
  return String(value);
}

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
