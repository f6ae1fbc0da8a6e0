/**
 * Where reports arrive: whatever comes while a batch is being applied shares the next one. Two batches per tenant are under
 * way at most (measured: more are no faster); one that finds none under way is cut in two, so that the children of a few
 * hundred parents are not all made by one. The answer comes after the commit.
 */
import type { FromWorker } from '../../contract/engine.ts';
import type { Failure, Report } from '../../contract/wire.ts';
import { isRefusal } from '../../errors.ts';
import { isolateRejected } from '../../kernel/isolate-rejected.ts';
import { splitInto } from '../../kernel/split-into.ts';
import { hasNoRuns, type Loader, unlessGone } from '../../loader/loader.ts';
import { failureOf, inParts } from './per-tenant-batch.ts';
import { TenantDesk } from './tenant-desk.ts';
import type { BatchTurns } from '../claims/batch-turns.ts';

type WorkerReport = FromWorker<Report>;

const batchesAtOnce = 2;
const largestBatch = 1_000;
/** A result of this length counts as one more report, so that a batch has 4 MiB of results, or those of one request. */
const resultLengthPerReport = 4_096;
/** What is worth a transaction of its own. */
const smallestPiece = 25;
/** Characters of PostgreSQL's message that a worker is sent. */
const maxDetailLength = 1_000;

export class ReportDesk {
  readonly #loader: Loader;
  readonly #turns: BatchTurns;
  readonly #desk: TenantDesk<readonly WorkerReport[], Failure[]>;

  constructor(loader: Loader, turns: BatchTurns) {
    this.#loader = loader;
    this.#turns = turns;
    this.#desk = new TenantDesk({
      apply: (tenant, items) => this.#apply(tenant, items),
      sizeOf: (reports) => reports.reduce((sum, report) => sum + weightOf(report), 0),
      largestBatch: (tenant) => Math.min(largestBatch, turns.maxBatch(tenant)),
      batchesAtOnce,
    });
  }

  /** Returns once all are applied, known to be stale, or named as failed: the worker sends those again. */
  async report(reports: readonly WorkerReport[]): Promise<Failure[]> {
    const { answers, failed } = await inParts(reports, async (tenant, some, withinMs) => {
      const pieces = this.#pieces(tenant, some);
      const [first] = pieces;
      if (first !== undefined && pieces.length === 1) return this.#desk.give(tenant, first, withinMs);
      return (await Promise.all(pieces.map((piece) => this.#givePiece(tenant, piece, withinMs)))).flat();
    });
    return [...answers.flat(), ...failed];
  }

  /** One that is late, or fails, does not take with it those that were applied. */
  #givePiece(tenant: string, piece: readonly WorkerReport[], withinMs: number): Promise<Failure[]> {
    const listed = (error: unknown): Failure[] => [
      { ...failureOf(tenant, error), runs: piece.map((report) => report.run) },
    ];
    return this.#desk.give(tenant, piece, withinMs).catch(listed);
  }

  /** Neighbours stay together: parents of one child that are counted in two batches have one wait for the other. */
  #pieces(tenant: string, reports: readonly WorkerReport[]): (readonly WorkerReport[])[] {
    const isSmall = this.#desk.isBusy(tenant) || reports.length < batchesAtOnce * smallestPiece;
    const half = isSmall ? reports.length : Math.ceil(reports.length / 2);
    return splitInto(Math.min(half, this.#turns.maxBatch(tenant)), reports);
  }

  async #apply(tenant: string, items: readonly (readonly WorkerReport[])[]): Promise<Failure[][]> {
    const row = await this.#loader.byId(tenant).catch(unlessGone);
    if (row === undefined) return items.map(() => []);
    const apply = async (reports: readonly WorkerReport[]): Promise<void> => {
      await this.#loader
        .use(row.id, ({ engine, ctx }) => engine.runs.report(ctx, reports))
        .catch((error: unknown) => {
          if (!hasNoRuns(error)) throw error;
        });
    };
    const all = items.flat();
    return this.#turns.report(row.id, all.length, async () => {
      if (items.length === 1) {
        const rejected = await isolateRejected(all, apply, { isRejection: isRefusal });
        return [Array.from(rejected, ([report, error]) => formatRejection(report, error))];
      }
      await apply(all);
      return items.map(() => []);
    });
  }
}

function weightOf({ result }: Report): number {
  return 1 + Math.floor((result?.length ?? 0) / resultLengthPerReport);
}

function formatRejection({ tenant, run }: Report, error: unknown): Failure {
  const detail = error instanceof Error ? error.message : String(error);
  return { tenant, run, code: 'bad_request', detail: detail.slice(0, maxDetailLength) };
}
