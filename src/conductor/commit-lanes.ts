/**
 * Sends the results of messages to the database: at most `maxLanes` puts at a time for each tenant, each with many executions.
 *
 * 1. Every result that is handed over is answered once: `won`, `lost`, `known`, or `failed` with the error.
 * 2. If the answer of a put is lost, the engine finds out what became of it (`settle`), however long that takes.
 * 3. If the database refuses a put because of its rows, each half is sent separately: one bad result does not hold up the others.
 */
import type { EngineContext } from '../contract/context.ts';
import type { FlowEngine, FlowRun, PutOutcome, PutResult } from '../contract/flows.ts';
import { isConnectionLoss, isRowRejection, isStaleEngine, sqlStateOf } from '../errors.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { newId } from '../kernel/id.ts';
import { pause } from '../kernel/service.ts';
import { checkpoint } from './checkpoints.ts';
import type { Mailbox } from './mailbox.ts';

export const commitLimits = {
  lanes: 3,
  /** Per put. More would delay the first ones without raising the rate. */
  runs: 250,
  bytes: 4 * 1024 * 1024,
  /** Messages of one execution in a put. */
  runsOfExecution: 50,
} as const;

/** The results of the letters of one mailbox that are away, in order. */
export interface Item {
  readonly box: Mailbox;
  readonly runs: readonly FlowRun[];
}

export type ItemOutcome =
  | PutOutcome
  /** `isRefused`: the database will refuse it again. Otherwise nothing was written, and it may be tried again. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly isRefused: boolean };

type News = Pick<PutResult, 'lanes' | 'cancelled' | 'receivers'>;

export interface Committed {
  readonly outcomes: readonly { readonly item: Item; readonly outcome: ItemOutcome }[];
  readonly news: News;
  /** The owner of the executions that have won. */
  readonly member: string;
}

export interface CommitLanesOptions {
  readonly engine: Pick<FlowEngine, 'put' | 'settle'>;
  readonly ctx: EngineContext;
  /** The id of this conductor. */
  readonly member: () => string;
  readonly onCommitted: (committed: Committed) => void;
  readonly onFree: () => void;
  /** An error that the lanes deal with themselves, for the log. */
  readonly onError: (error: unknown) => void;
}

interface Batch {
  readonly items: readonly Item[];
  readonly runs: readonly FlowRun[];
  readonly member: string;
  readonly commit: string;
}

export class CommitLanes {
  readonly #options: CommitLanesOptions;
  readonly #over = new AbortController();
  readonly #busy = new Set<Promise<void>>();

  constructor(options: CommitLanesOptions) {
    this.#options = options;
  }

  get isFree(): boolean {
    return this.#busy.size < commitLimits.lanes;
  }

  get isIdle(): boolean {
    return this.#busy.size === 0;
  }

  send(items: readonly Item[]): void {
    const lane = this.#commit(items).finally(() => {
      this.#busy.delete(lane);
      this.#options.onFree();
    });
    this.#busy.add(lane);
  }

  /** Returns once all puts are answered. */
  async drain(): Promise<void> {
    await Promise.all(this.#busy);
  }

  /** Lost answers are no longer looked for. */
  abandon(): void {
    this.#over.abort();
  }

  async #commit(items: readonly Item[]): Promise<void> {
    for (const part of await this.#put(items)) this.#options.onCommitted(part);
  }

  /** Never rejects. */
  async #put(items: readonly Item[]): Promise<Committed[]> {
    const { engine, ctx } = this.#options;
    const runs = items.flatMap((item) => item.runs);
    const batch: Batch = { items, runs, member: this.#options.member(), commit: newId() };
    try {
      checkpoint('put.sent');
      const result = await engine.put(ctx, runs, { member: batch.member, commit: batch.commit, atMs: ctx.time.now() });
      checkpoint('put.answered');
      return [judge(batch, result)];
    } catch (error) {
      this.#options.onError(error);
      if (isUncertain(error)) return [await this.#settle(batch, error)];
      if (!isRowRejection(error)) return [allFailed(batch, error, false)];
      if (items.length === 1) return [allFailed(batch, error, true)];
      const half = Math.ceil(items.length / 2);
      return [...(await this.#put(items.slice(0, half))), ...(await this.#put(items.slice(half)))];
    }
  }

  async #settle(batch: Batch, cause: unknown): Promise<Committed> {
    const { engine, ctx, onError } = this.#options;
    const { signal } = this.#over;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        return judge(batch, await engine.settle(ctx, batch.runs, batch.commit));
      } catch (error) {
        if (isStaleEngine(error)) return allFailed(batch, error, false);
        onError(error);
        await pause(delayMs(reconnect, attempt), signal);
      }
    }
    return allFailed(batch, cause, false);
  }
}

/** Whether the put may have been committed. */
function isUncertain(error: unknown): boolean {
  if (isStaleEngine(error)) return false;
  return isConnectionLoss(error) || sqlStateOf(error) === undefined;
}

/** All runs of an execution count, or none. */
function judge({ items, member }: Batch, { outcomes, ...news }: PutResult): Committed {
  let at = 0;
  const judged = items.map((item) => {
    const outcome = outcomes[at + item.runs.length - 1] ?? { kind: 'lost' as const };
    at += item.runs.length;
    return { item, outcome };
  });
  return { outcomes: judged, news, member };
}

function allFailed({ items, member }: Batch, error: unknown, isRefused: boolean): Committed {
  const outcome = { kind: 'failed', error, isRefused } as const;
  return {
    outcomes: items.map((item) => ({ item, outcome })),
    news: { lanes: [], cancelled: [], receivers: [] },
    member,
  };
}
