/**
 * Vacuums the tables that are queues. Every run leaves dead rows in `live`, every errand in `errand`, and a claim walks over all
 * of them before the first ready row. Autovacuum runs once a minute at best; under load, that halves the rate of claims. If a
 * long transaction elsewhere keeps dead rows from being removed, vacuuming does not help, so the waits grow until it does.
 */
import { pause, type Service } from '../../kernel/service.ts';
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import { deadRows, type QueueTable } from '../../postgres/claim-floor.ts';
import type { Scheduling } from '../scheduling.ts';

const busyWaitMs = 1_000;
/** The wait for a queue with few changes. */
const calmWaitMs = 4_000;
const maxWaitMs = 30_000;
/** Fewer changed rows than this are not worth a vacuum, nor is a smaller share of the table, because it reads all indexes. */
const minChangedRows = 1_000;
const minChangedShare = 0.05;
/** With fewer changes than this between two checks, the queue counts as calm. */
const maxCalmChanges = 100;

// no truncation, which would lock out all claims for a moment; one process instead of one per index, to leave CPU to others
const vacuumOf: Readonly<Record<QueueTable, Sql>> = {
  live: sql`vacuum (truncate off, skip_locked, parallel 0) live`,
  errand: sql`vacuum (truncate off, skip_locked, parallel 0) errand`,
};
const queueTables: readonly QueueTable[] = ['live', 'errand'];

export function vacuumService(scheduling: Scheduling): Service {
  const { db, sweepMs, processor } = scheduling;
  const sweeps = queueTables.map((table) => new TableSweep(scheduling, table));
  let waitedMs = 0;
  return processor('vacuum', 'vacuuming the queues', async (signal) => {
    const counts = await countRows(db);
    for (const sweep of sweeps) await sweep.pass(counts, waitedMs);
    waitedMs = Math.min(...sweeps.map((sweep) => sweep.leftMs));
    return () => pause(sweepMs(waitedMs), signal);
  });
}

type RowCount = { readonly name: QueueTable; readonly rows: number; readonly changed: number };

/** The sweeps of one table. A pass before its wait is over does nothing. */
class TableSweep {
  readonly #scheduling: Scheduling;
  readonly #table: QueueTable;
  #waitMs = busyWaitMs;
  #leftMs = 0;
  #changedAtSweep = 0;
  #changedAtCheck = 0;

  constructor(scheduling: Scheduling, table: QueueTable) {
    this.#scheduling = scheduling;
    this.#table = table;
  }

  /** Until its next pass. */
  get leftMs(): number {
    return this.#leftMs;
  }

  async pass(counts: readonly RowCount[], waitedMs: number): Promise<void> {
    this.#leftMs -= waitedMs;
    if (this.#leftMs > 0) return;
    try {
      await this.#check(counts);
    } finally {
      this.#leftMs = this.#waitMs;
    }
  }

  async #check(counts: readonly RowCount[]): Promise<void> {
    const { rows, changed } = counts.find(({ name }) => name === this.#table) ?? { rows: 0, changed: 0 };
    const isCalm = changed - this.#changedAtCheck < maxCalmChanges;
    this.#changedAtCheck = changed;
    if (isCalm) this.#waitMs = Math.max(this.#waitMs, calmWaitMs);
    else if (this.#waitMs === calmWaitMs) this.#waitMs = busyWaitMs;
    // statistics are reset after a crash
    if (changed < this.#changedAtSweep) this.#changedAtSweep = 0;
    if (changed - this.#changedAtSweep < Math.max(minChangedRows, minChangedShare * rows)) return;
    await this.#sweep(changed);
  }

  async #sweep(changed: number): Promise<void> {
    const { ctx, db } = this.#scheduling;
    const vacuum = (): Promise<number> => db.exec(vacuumOf[this.#table]);
    if ((await ctx.housekeeping('vacuum of a queue', vacuum)) === undefined) return;
    const inVain = (await deadRows(db, this.#table)) > (changed - this.#changedAtSweep) / 2;
    this.#waitMs = inVain ? Math.min(maxWaitMs, this.#waitMs * 2) : busyWaitMs;
    this.#changedAtSweep = changed;
  }
}

/**
 * Counts the rows, and the rows updated or deleted so far. The number of dead rows would not do: rows that a query has
 * pruned are still in the indexes.
 */
async function countRows(db: Db): Promise<RowCount[]> {
  return db.rows(sql`
    select name,
           pg_stat_get_live_tuples(name::regclass)::float8 as rows,
           (pg_stat_get_tuples_updated(name::regclass) + pg_stat_get_tuples_deleted(name::regclass))::float8 as changed
      from unnest(${queueTables}::text[]) as t (name)`);
}
