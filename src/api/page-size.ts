/**
 * Limits the size of a page in bytes, because a limit of rows does not limit the length of their texts.
 *
 * Lists do not contain documents and configurations, which are read one at a time. Long texts are shortened, and lists of
 * cells (instants by tasks) limit the number of cells. All other columns are bounded when they are written.
 */
import { type Sql, sql } from '../kernel/sql.ts';

/** Maximum characters of a description in a list. A description may be as long as its document. */
const listedChars = 1_000;

export const listedText = (column: Sql): Sql => sql`left(${column}, ${listedChars}::integer)`;

/** Maximum cells of a page, each about 150 bytes of JSON. */
const maxCells = 20_000;

/** The number of requested instants that fit on a page, at least one. */
export function instantsOnPage(limit: number, tasks: number, cells = maxCells): number {
  return Math.max(1, Math.min(limit, Math.floor(cells / Math.max(1, tasks))));
}
