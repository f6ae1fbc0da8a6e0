/**
 * What keeps a page of a list small, whatever was written into the things that it lists: the number of rows alone does not.
 *
 * Documents and configurations are in no list; they are read one at a time. Long texts are shortened, and lists of cells
 * (instants by tasks) count cells. All other columns are bounded where they are written.
 */
import { type Sql, sql } from '../kernel/sql.ts';

/** Characters of a description in a list. It may be as long as its document, and is whole where one job is read. */
const listedChars = 1_000;

export const listedText = (column: Sql): Sql => sql`left(${column}, ${listedChars}::integer)`;

/** Cells of a page, each about 150 bytes of JSON. */
const maxCells = 20_000;

/** How many of the instants that were asked for fit on a page, at least one. */
export function instantsOnPage(limit: number, tasks: number, cells = maxCells): number {
  return Math.max(1, Math.min(limit, Math.floor(cells / Math.max(1, tasks))));
}
