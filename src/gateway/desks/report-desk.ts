/**
 * The place where reports arrive. Reports that arrive while a batch is being applied share the next one. A tenant has at most
 * two batches under way (measured: more are no faster). A batch for an idle tenant is split in two, so that the children of a
 * few hundred parents are not all created by one batch. The answer is sent after the commit.
 *
 * A batch borrows free places from the claim desk: its commit hands out the runs that it makes ready.
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
import type { ClaimDesk, Loan } from '../claims/claim-desk.ts';

type WorkerReport = FromWorker<Report>;

const batchesAtOnce = 2;
const largestBatch = 1_000;
/** A result of this length counts as one more report, so that a batch has at most 4 MiB of results, or those of one request. */
const resultLengthPerReport = 4_096;
/** The minimum number of reports that is worth a transaction of its own. */
const smallestPiece = 25;
/** The maximum length of PostgreSQL's message in an answer to a worker. */
const maxDetailLength = 1_000;

export interface ReportDeskOptions {
  readonly loader: Loader;
  readonly turns: BatchTurns;
  readonly claims: Pick<ClaimDesk, 'lend'>;
}

export class ReportDesk {
  readonly #loader: Loader;
  readonly #turns: BatchTurns;
  readonly #claims: Pick<ClaimDesk, 'lend'>;
  readonly #desk: TenantDesk<readonly WorkerReport[], Failure[]>;

  constructor({ loader, turns, claims }: ReportDeskOptions) {
    this.#loader = loader;
    this.#turns = turns;
    this.#claims = claims;
    this.#desk = new TenantDesk({
      apply: (tenant, items) => this.#apply(tenant, items),
      sizeOf: (reports) => reports.reduce((sum, report) => sum + weightOf(report), 0),
      largestBatch: (tenant) => Math.min(largestBatch, turns.maxBatch(tenant)),
      batchesAtOnce,
    });
  }

  /** Returns once all are applied, known to be stale, or listed as failed. The worker repeats failed ones. */
  async report(reports: readonly WorkerReport[]): Promise<Failure[]> {
    const { answers, failed } = await inParts(reports, async (tenant, some, withinMs) => {
      const pieces = this.#pieces(tenant, some);
      const [first] = pieces;
      if (first !== undefined && pieces.length === 1) return this.#desk.give(tenant, first, withinMs);
      return (await Promise.all(pieces.map((piece) => this.#givePiece(tenant, piece, withinMs)))).flat();
    });
    return [...answers.flat(), ...failed];
  }

  /** A piece that is late or fails does not affect the pieces that were applied. */
  #givePiece(tenant: string, piece: readonly WorkerReport[], withinMs: number): Promise<Failure[]> {
    const listed = (error: unknown): Failure[] => [
      { ...failureOf(tenant, error), runs: piece.map((report) => report.run) },
    ];
    return this.#desk.give(tenant, piece, withinMs).catch(listed);
  }

  /** Keeps neighbours together: if parents of one child are in two batches, one batch waits for the other. */
  #pieces(tenant: string, reports: readonly WorkerReport[]): (readonly WorkerReport[])[] {
    const isSmall = this.#desk.isBusy(tenant) || reports.length < batchesAtOnce * smallestPiece;
    const half = isSmall ? reports.length : Math.ceil(reports.length / 2);
    return splitInto(Math.min(half, this.#turns.maxBatch(tenant)), reports);
  }

  async #apply(tenant: string, items: readonly (readonly WorkerReport[])[]): Promise<Failure[][]> {
    const row = await this.#loader.byId(tenant).catch(unlessGone);
    if (row === undefined) return items.map(() => []);
    const all = items.flat();
    return this.#turns.report(row.id, all.length, async () => {
      const apply = this.#applyWithLoan(row);
      if (items.length === 1) {
        const rejected = await isolateRejected(all, apply, { isRejection: isRefusal });
        return [Array.from(rejected, ([report, error]) => formatRejection(report, error))];
      }
      await apply(all);
      return items.map(() => []);
    });
  }

  /** Returns a function that applies reports. Its first call uses the loan; later calls, after a rejection, have none. */
  #applyWithLoan({
    id,
    name,
  }: {
    readonly id: string;
    readonly name: string;
  }): (reports: readonly WorkerReport[]) => Promise<void> {
    let loan: Loan | undefined = this.#claims.lend(id);
    return async (reports) => {
      const mine = loan;
      loan = undefined;
      try {
        const done = await this.#loader.use(id, ({ engine, ctx }) =>
          engine.runs.report(ctx, reports, mine?.pollsOf(name)),
        );
        mine?.settle(done.runs?.map((runs) => [...runs]));
      } catch (error) {
        if (isRefusal(error)) mine?.settle(undefined);
        else mine?.fail(error);
        if (!hasNoRuns(error)) throw error;
      }
    };
  }
}

function weightOf({ result }: Report): number {
  return 1 + Math.floor((result?.length ?? 0) / resultLengthPerReport);
}

function formatRejection({ tenant, run }: Report, error: unknown): Failure {
  const detail = error instanceof Error ? error.message : String(error);
  return { tenant, run, code: 'bad_request', detail: detail.slice(0, maxDetailLength) };
}
