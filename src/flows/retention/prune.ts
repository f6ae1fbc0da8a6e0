/**
 * Retention of executions.
 *
 * 1. Ended executions go by age, and, if a number is set, beyond the newest of each flow.
 * 2. Of executions that run on and on, commits go by age that a snapshot has made superfluous: their state stays, and revisions below
 *    the snapshot cannot be looked at any more.
 * 3. Each call is one small step. `more`: a further call has more to look at. A pass goes through all ended executions that are too old,
 *    and a stretch of the other tables; the next pass continues there.
 */
import type { Retention } from '../../contract/context.ts';
import { nilId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import * as queries from './queries.ts';

interface Pruned {
  readonly rows: number;
  readonly more: boolean;
}

export interface Keep extends Pick<Retention, 'ageMs' | 'runs'> {
  readonly nowMs: number;
}

const batch = { executions: 500, rows: 2_000, flows: 20, snapshots: 200 } as const;

type Stage = 'aged' | 'surplus' | 'commits';

export class ExecutionPruner {
  /** Whether a pass covers all tables from end to end. */
  readonly #whole: boolean;
  #stage: Stage = 'aged';
  #flow = nilId;
  #snapshot = nilId;
  /** Executions of which a call has not deleted everything yet. */
  #left: readonly string[] = [];

  constructor({ whole }: { readonly whole: boolean }) {
    this.#whole = whole;
  }

  async step(db: Db, keep: Keep): Promise<Pruned> {
    if (this.#left.length > 0) return { rows: await this.#forget(db), more: true };
    const before = keep.ageMs === null ? undefined : new Date(keep.nowMs - keep.ageMs);
    switch (this.#stage) {
      case 'aged':
        return this.#aged(db, before);
      case 'surplus':
        return this.#surplus(db, keep.runs);
      case 'commits':
        return this.#commits(db, before);
      default:
        return this.#stage satisfies never;
    }
  }

  async #forget(db: Db): Promise<number> {
    const { rows, more } = await queries.forgetExecutions(db, this.#left, batch.rows);
    if (!more) this.#left = [];
    return rows;
  }

  async #aged(db: Db, before: Date | undefined): Promise<Pruned> {
    this.#left = before === undefined ? [] : await queries.findEnded(db, before, batch.executions);
    const rows = this.#left.length === 0 ? 0 : await this.#forget(db);
    // those that another process has locked are left to a later pass
    if (rows === 0) {
      this.#left = [];
      this.#stage = 'surplus';
    }
    return { rows, more: true };
  }

  async #surplus(db: Db, keep: number | null): Promise<Pruned> {
    const page = { after: this.#flow, flows: batch.flows, limit: batch.executions };
    const found = keep === null ? [] : await queries.findSurplus(db, { ...page, keep });
    this.#left = found.flatMap(({ executions }) => executions ?? []).slice(0, batch.executions);
    const rows = this.#left.length === 0 ? 0 : await this.#forget(db);
    // the same flows again, as long as they have too many
    if (rows > 0) return { rows, more: true };
    this.#left = [];
    const isEnd = found.length < batch.flows;
    this.#flow = isEnd ? nilId : (found.at(-1)?.flow ?? nilId);
    if (isEnd || !this.#whole) this.#stage = 'commits';
    return { rows, more: true };
  }

  async #commits(db: Db, before: Date | undefined): Promise<Pruned> {
    const page = before === undefined ? [] : await queries.findLongOnes(db, this.#snapshot, batch.snapshots);
    const rows =
      before === undefined || page.length === 0 ? 0 : await queries.forgetCommits(db, page, before, batch.rows);
    if (rows === batch.rows) return { rows, more: true };
    const isEnd = page.length < batch.snapshots;
    this.#snapshot = isEnd ? nilId : (page.at(-1)?.id ?? nilId);
    const more = !isEnd && (this.#whole || rows > 0);
    if (!more) this.#stage = 'aged';
    return { rows, more };
  }
}
