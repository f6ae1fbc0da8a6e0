/** Looks whether the relay has something to copy, and adds its errand. */
import type { Errands } from '../../errands/contract.ts';
import type { Db } from '../../kernel/sql.ts';
import { relayKey } from '../errand-keys.ts';
import { findRelayNeed } from './queries.ts';

/** Between two looks, at least. */
const pauseMs = 100;

export class RelayWatch {
  readonly #db: Db;
  readonly #errands: Errands;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #isFollowing = false;

  constructor(db: Db, errands: Errands) {
    this.#db = db;
    this.#errands = errands;
  }

  /** Whether a topic of Millrace itself has a subscriber. */
  get isFollowing(): boolean {
    return this.#isFollowing;
  }

  /** Returns when to look again, if it is too early to look. */
  async look(nowMs: number): Promise<number | undefined> {
    if (nowMs - this.#lookedAtMs < pauseMs) return this.#lookedAtMs + pauseMs;
    this.#lookedAtMs = nowMs;
    const { isNeeded, isFollowing } = await findRelayNeed(this.#db);
    this.#isFollowing = isFollowing;
    if (isNeeded) await this.#errands.push('aux', [{ key: relayKey }]);
    return undefined;
  }
}
