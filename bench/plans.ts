/** Summarizes `explain (analyze, buffers)` of a statement: its largest scans, and the large tables it read completely. */
import type { Pool } from 'pg';

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface Plan {
  readonly ms: number;
  /** Pages of 8 KB, from cache and disk. */
  readonly pages: number;
  /** Scans of large tables, most rows first: `run_ended 255`. */
  readonly scans: readonly string[];
  /** Large tables that were scanned sequentially. */
  readonly whole: readonly string[];
}

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly Node[];
}

/** Tables that grow with every run. */
const large = /^(run|token|firing|log|event_\d+)$/;
/** A sequential scan of at most this many rows is acceptable. */
const maxSmallRows = 10_000;

export async function explain(pool: Pool, { text, values }: Statement): Promise<Plan> {
  const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: Node; 'Execution Time': number }] }>({
    text: `explain (analyze, buffers, format json) ${text}`,
    values: [...values],
  });
  const [top] = rows[0]?.['QUERY PLAN'] ?? [];
  if (top === undefined) throw new Error('explain returned no plan');
  const nodes = [...walk(top.Plan)];
  const scans = nodes.filter((node) => node['Node Type'].endsWith('Scan') && nameOf(node) !== undefined);
  return {
    ms: top['Execution Time'],
    pages: (top.Plan['Shared Hit Blocks'] ?? 0) + (top.Plan['Shared Read Blocks'] ?? 0),
    scans: summarizeScans(scans),
    whole: scans
      .filter((node) => node['Node Type'] === 'Seq Scan' && isLarge(node))
      .flatMap((node) => nameOf(node) ?? []),
  };
}

function* walk(node: Node): Generator<Node> {
  yield node;
  for (const child of node.Plans ?? []) yield* walk(child);
}

const nameOf = (node: Node): string | undefined => node['Index Name'] ?? node['Relation Name'];

/** All rows that the node read, including those it discarded. */
const rowsOf = (node: Node): number => {
  const each = ['Actual Rows', 'Rows Removed by Filter', 'Rows Removed by Index Recheck'] as const;
  return each.reduce((sum, key) => sum + (node[key] ?? 0), 0) * (node['Actual Loops'] ?? 1);
};

const isLarge = (node: Node): boolean => large.test(node['Relation Name'] ?? '') && rowsOf(node) > maxSmallRows;

function summarizeScans(scans: readonly Node[]): string[] {
  const sums = new Map<string, number>();
  for (const scan of scans) {
    const name = nameOf(scan)?.replace(/^event_\d+/, 'event_n') ?? '';
    sums.set(name, (sums.get(name) ?? 0) + rowsOf(scan));
  }
  return [...sums]
    .filter(([, rows]) => rows >= 1)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 3)
    .map(([name, rows]) => `${name} ${Math.round(rows).toLocaleString('en-US')}`);
}
