/**
 * Whether the disk of a database has room. A statement that changes a row mostly finds room in a file that exists, so it
 * succeeds on a full disk while other statements fail.
 */
import { type Db, sql } from '../kernel/sql.ts';

/** Rows of 20 bytes and more: with the smallest `work_mem` they become a temporary file of some 400 KiB. */
const rows = 20_000;

/**
 * Writes a temporary file on the disk of the database, and drops it. Rejects with SQLSTATE 53100 if the disk is full. Writes no
 * WAL and leaves nothing behind.
 */
export function proveDiskSpace(db: Db): Promise<void> {
  return db.transaction(async (tx) => {
    await tx.exec(sql`
      select set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)`);
    await tx.exec(sql`select count(*) from generate_series(1, ${rows}::integer)`);
  });
}
