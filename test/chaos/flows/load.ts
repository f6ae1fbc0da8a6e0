/**
 * A client of flows: launches executions of every kind through the API, sends their signals, cancels some, and answers work items. It
 * repeats whatever is not answered, with the same key, and remembers what was acknowledged.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CallFailed, type Client } from '../../../src/http/client.ts';
import { newId } from '../../../src/kernel/id.ts';
import { type Db, sql } from '../../../src/kernel/sql.ts';
import type { Endpoints } from '../../harness/product.ts';
import type { Dice } from '../dice.ts';
import { flowDocuments, flowInput, type FlowKind, flowMixture, flowSignals } from './workload.ts';

/** Cancellations come at any moment of an execution. */
const maxCancelDelayMs = 1_000;
/** Requests at once. */
const maxRequests = 8;
const pauseMs = 50;

/** The tenant whose flows are executed. */
export interface FlowTarget {
  /** Calls its API, and retries while that or the database is away. */
  readonly call: Client<Endpoints>;
  readonly db: Db;
}

export class FlowLoad {
  readonly launched = new Map<string, FlowKind>();
  /** Ids of signals and operations that were acknowledged. */
  readonly sent = new Set<string>();
  readonly #target: FlowTarget;
  readonly #mixture: readonly FlowKind[];
  readonly #dice: Dice;
  readonly #later = new Set<Promise<void>>();
  #count = 0;

  constructor(target: FlowTarget, dice: Dice, mixture: readonly FlowKind[] = flowMixture) {
    this.#target = target;
    this.#dice = dice;
    this.#mixture = mixture;
  }

  /** Launches so many, and sends what belongs to them. */
  async launch(count: number): Promise<void> {
    const mixture = this.#mixture;
    const kinds = Array.from({ length: count }, () => mixture[this.#count++ % mixture.length] ?? 'hosted');
    const made = await Promise.all([...new Set(kinds)].map((kind) => this.#launch(kind, kinds)));
    await inParallel(made.flat(), ([id, kind]) => this.#follow(id, kind));
  }

  /** Executions that have not ended. */
  async underWay(): Promise<number> {
    const { n } = await this.#target.db.one<{ n: number }>(
      sql`select count(*)::integer as n from execution where status < 3`,
    );
    return n;
  }

  /** Keeps so many executions under way until the signal comes. All is sent when it returns. */
  async feed(atOnce: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const present = await this.underWay().catch(() => atOnce);
      if (present < atOnce) await this.launch(Math.min(atOnce - present, maxLaunches));
      else await sleep(pauseMs);
    }
    await Promise.all(this.#later);
  }

  /** Answers work items, until the signal comes. */
  async answerUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#answerAll();
      await sleep(pauseMs);
    }
  }

  async #answerAll(): Promise<void> {
    const { items } = await this.#target.call('GET /api/workitems', { query: { assignee: 'meg', limit: 1_000 } });
    await inParallel(items, async ({ id }) => {
      const answer = { params: { id }, body: { approved: true } };
      await this.#target.call('POST /api/workitems/{id}/answer', answer).catch(unlessStatus(410));
    });
  }

  async #launch(kind: FlowKind, kinds: readonly FlowKind[]): Promise<(readonly [string, FlowKind])[]> {
    const items = kinds.filter((each) => each === kind).map(() => ({ input: flowInput, key: newId() }));
    const { items: made } = await this.#target.call('POST /api/executions/bulk', { body: { flow: kind, items } });
    return made.map(({ id, outcome, code }) => {
      if (id === null) throw new Error(`a launch of ${kind} is ${outcome}: ${code}`);
      this.launched.set(id, kind);
      return [id, kind] as const;
    });
  }

  async #follow(id: string, kind: FlowKind): Promise<void> {
    const body = flowSignals[kind];
    if (body !== undefined)
      await this.#send((headers) =>
        this.#target.call('POST /api/executions/{id}/signals', { params: { id }, body, headers }),
      );
    if (kind === 'cancelled') this.#cancelLater(id);
  }

  #cancelLater(id: string): void {
    const cancelling = sleep(this.#dice.upTo(maxCancelDelayMs)).then(() =>
      this.#send((headers) => this.#target.call('POST /api/executions/{id}/cancel', { params: { id }, headers })),
    );
    this.#later.add(cancelling);
    void cancelling.finally(() => this.#later.delete(cancelling));
  }

  async #send(request: (headers: Record<string, string>) => Promise<unknown>): Promise<void> {
    const id = newId();
    await request({ 'idempotency-key': id });
    this.sent.add(id);
  }
}

const maxLaunches = 100;

export async function applyFlows({ call }: FlowTarget): Promise<void> {
  for (const body of flowDocuments) await call('POST /api/flows', { body });
}

function unlessStatus(status: number): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof CallFailed) || error.status !== status) throw error;
  };
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: maxRequests }, worker));
}
