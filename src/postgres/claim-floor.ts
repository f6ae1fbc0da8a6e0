/**
 * The rank at which a claim begins while the table of a queue has many dead rows. Dead rows are swept each second, except while
 * a long transaction elsewhere (a dump, a forgotten session) may still see them. Then each claim would scan all of them, and more
 * with every claimed row. So claims begin at the rank of a moment ago, and only one claim per second begins at the first row: it
 * finds rows that were queued before that rank (returned runs, a higher priority, late commits).
 */
import { type Db, sql } from '../kernel/sql.ts';

/** The tables that are queues. */
export type QueueTable = 'live' | 'errand';

/** More dead rows than a normal second leaves behind. */
const manyDeadRows = 50_000;
const fullClaimEveryMs = 1_000;
/** A claim that took no longer has not scanned many dead rows. */
const quickMs = 20;
/** Transactions that commit later than their neighbours do so within this time. */
const settledMs = 150;

export class ClaimFloor<Rank> {
  readonly #table: QueueTable;
  #crowded = false;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #isLookDue = false;
  /** The lowest rank of each recent claim, oldest first. */
  #claims: { readonly atMs: number; readonly rank: Rank }[] = [];

  constructor(table: QueueTable) {
    this.#table = table;
  }

  /** Whether a claim that begins at the first row would scan many dead rows. */
  get isCrowded(): boolean {
    return this.#crowded;
  }

  /** The rank to begin at; null: the first row. */
  current(nowMs: number): Rank | null {
    if (nowMs - this.#lookedMs >= fullClaimEveryMs) {
      this.#lookedMs = nowMs;
      this.#isLookDue = true;
      return null;
    }
    if (!this.#crowded) return null;
    const settled = this.#claims.filter((claim) => claim.atMs <= nowMs - settledMs);
    this.#claims = this.#claims.slice(Math.max(0, settled.length - 1));
    return settled.at(-1)?.rank ?? null;
  }

  /** Call it after a claim. It does not wait for the count of dead rows, which the next claims use. */
  note(db: Db, { atMs, tookMs }: { atMs: number; tookMs: number }, lowest: Rank | undefined): void {
    if (this.#crowded && lowest !== undefined) this.#claims.push({ atMs, rank: lowest });
    if (this.#isLookDue && (this.#crowded || tookMs > quickMs)) void this.#look(db).catch(() => {});
    this.#isLookDue = false;
  }

  async #look(db: Db): Promise<void> {
    this.#crowded = (await deadRows(db, this.#table)) > manyDeadRows;
    if (!this.#crowded) this.#claims = [];
  }
}

/** PostgreSQL's estimate of the dead rows in the table of a queue. */
export async function deadRows(db: Db, table: QueueTable): Promise<number> {
  const { dead } = await db.one<{ dead: number }>(sql`
    select coalesce(pg_stat_get_dead_tuples(${table}::regclass), 0)::float8 as dead`);
  return dead;
}
