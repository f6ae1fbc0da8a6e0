/**
 * Where reports arrive: whatever comes while a batch is being applied shares the next one. Two batches per tenant are under
 * way at most (measured: more are no faster); one that finds none under way is cut in two, so that the children of a few
 * hundred parents are not all made by one. The answer comes after the commit.
 */
import type { Failure, Report } from '../contract/wire.ts';
import { isRefusal } from '../errors.ts';
import { hasNoRuns, type Loader, unlessGone } from '../launcher/loader.ts';
import { failureOf, inParts } from './parts.ts';
import { TenantDesk } from './tenant-desk.ts';
import type { Turns } from './turns.ts';

const batchesAtOnce = 2;
const largestBatch = 1_000;
/** What is worth a transaction of its own. */
const smallestPiece = 25;

export class ReportDesk {
  readonly #loader: Loader;
  readonly #turns: Turns;
  readonly #desk: TenantDesk<readonly Report[], Failure[]>;

  constructor(loader: Loader, turns: Turns) {
    this.#loader = loader;
    this.#turns = turns;
    this.#desk = new TenantDesk({
      apply: (tenant, items) => this.#apply(tenant, items),
      sizeOf: (reports) => reports.length,
      largestBatch: (tenant) => Math.min(largestBatch, turns.largestOf(tenant)),
      batchesAtOnce,
    });
  }

  /** Returns once all are applied, known to be stale, or named as failed: the worker sends those again. */
  async report(reports: readonly Report[]): Promise<Failure[]> {
    const { answers, failed } = await inParts(reports, async (tenant, some, withinMs) => {
      const pieces = this.#pieces(tenant, some);
      const [first] = pieces;
      if (first !== undefined && pieces.length === 1) return this.#desk.give(tenant, first, withinMs);
      return (await Promise.all(pieces.map((piece) => this.#givePiece(tenant, piece, withinMs)))).flat();
    });
    return [...answers.flat(), ...failed];
  }

  /** One that is late, or fails, does not take with it those that were applied. */
  #givePiece(tenant: string, piece: readonly Report[], withinMs: number): Promise<Failure[]> {
    const listed = (error: unknown): Failure[] => [
      { ...failureOf(tenant, error), runs: piece.map((report) => report.run) },
    ];
    return this.#desk.give(tenant, piece, withinMs).catch(listed);
  }

  /** Neighbours stay together: parents of one child that are counted in two batches have one wait for the other. */
  #pieces(tenant: string, reports: readonly Report[]): (readonly Report[])[] {
    const isSmall = this.#desk.isBusy(tenant) || reports.length < batchesAtOnce * smallestPiece;
    const half = isSmall ? reports.length : Math.ceil(reports.length / 2);
    return inPieces(reports, Math.min(half, this.#turns.largestOf(tenant)));
  }

  async #apply(tenant: string, items: readonly (readonly Report[])[]): Promise<Failure[][]> {
    const row = await this.#loader.byId(tenant).catch(unlessGone);
    if (row === undefined) return items.map(() => []);
    const apply = async (reports: readonly Report[]): Promise<void> => {
      await this.#loader
        .use(row.id, ({ engine, ctx }) => engine.report(ctx, reports))
        .catch((error: unknown) => {
          if (!hasNoRuns(error)) throw error;
        });
    };
    const all = items.flat();
    return this.#turns.report(row.id, all.length, async () => {
      if (items.length === 1) return [await withoutRefused(all, apply)];
      await apply(all);
      return items.map(() => []);
    });
  }
}

function inPieces<T>(items: readonly T[], size: number): (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/** One that PostgreSQL refuses is named, and does not take the others with it. */
async function withoutRefused(
  reports: readonly Report[],
  apply: (reports: readonly Report[]) => Promise<void>,
): Promise<Failure[]> {
  try {
    await apply(reports);
    return [];
  } catch (error) {
    if (!isRefusal(error) || !(error instanceof Error)) throw error;
    const [first] = reports;
    if (first !== undefined && reports.length === 1)
      return [{ tenant: first.tenant, run: first.run, code: 'bad_request', detail: error.message.slice(0, 1_000) }];
    const half = Math.ceil(reports.length / 2);
    const refused = await withoutRefused(reports.slice(0, half), apply);
    return [...refused, ...(await withoutRefused(reports.slice(half), apply))];
  }
}
