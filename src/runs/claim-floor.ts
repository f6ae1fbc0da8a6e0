/**
 * Where a claim begins to look when dead rows crowd the queue's table. They are swept each second, but not while a long
 * transaction elsewhere (a dump, a forgotten session) may still want to see them; then each claim would walk over all of
 * them, and more with every run. So claims begin where they were a moment ago, and only one each second begins at the
 * very first: it finds what came in before that place (returned runs, a higher priority).
 */
import { type Db, sql } from '../kernel/sql.ts';

/** So many dead rows are more than an ordinary second leaves behind. */
const crowd = 50_000;
const lookEveryMs = 1_000;
/** A claim that took no longer has not walked over them. */
const quickMs = 20;
/** What commits later than its neighbours does so within this time. */
const settledMs = 150;

export class ClaimFloor {
  #crowded = false;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #isLookDue = false;
  /** The lowest rank of each recent claim, oldest first. */
  #claims: { readonly atMs: number; readonly rank: Date }[] = [];

  /** Whether a claim that begins at the very first run would walk over many dead rows. */
  get isCrowded(): boolean {
    return this.#crowded;
  }

  /** The rank to begin at; null: the very first. */
  current(nowMs: number): Date | null {
    if (nowMs - this.#lookedMs >= lookEveryMs) {
      this.#lookedMs = nowMs;
      this.#isLookDue = true;
      return null;
    }
    if (!this.#crowded) return null;
    const settled = this.#claims.filter((claim) => claim.atMs <= nowMs - settledMs);
    this.#claims = this.#claims.slice(Math.max(0, settled.length - 1));
    return settled.at(-1)?.rank ?? null;
  }

  /** A claim has been answered. Nobody waits for the look, for which its connection does: the next claims heed it. */
  note(db: Db, { atMs, tookMs }: { atMs: number; tookMs: number }, lowest: Date | undefined): void {
    if (this.#crowded && lowest !== undefined) this.#claims.push({ atMs, rank: lowest });
    if (this.#isLookDue && (this.#crowded || tookMs > quickMs)) void this.#look(db).catch(() => {});
    this.#isLookDue = false;
  }

  async #look(db: Db): Promise<void> {
    this.#crowded = (await deadRows(db)) > crowd;
    if (!this.#crowded) this.#claims = [];
  }
}

/** How many dead rows PostgreSQL believes the queue's table to have. */
export async function deadRows(db: Db): Promise<number> {
  const { dead } = await db.one<{ dead: number }>(sql`
    select coalesce(pg_stat_get_dead_tuples('live'::regclass), 0)::float8 as dead`);
  return dead;
}
