/**
 * Where reports arrive: whatever comes while a batch is being applied shares the next one. Two batches per tenant are under
 * way at most (measured: more are no faster); one that finds none under way is cut in two, so that the children of a few
 * hundred parents are not all made by one. The answer comes after the commit.
 */
import type { Failure, Report } from '../contract/wire.ts';
import { isRefusal } from '../errors.ts';
import { type Loader, unlessGone } from '../launcher/loader.ts';
import { inParts } from './parts.ts';
import { TenantDesk } from './tenant-desk.ts';

const batchesAtOnce = 2;
const largestBatch = 1_000;
/** What is worth a transaction of its own. */
const smallestPiece = 25;

export class ReportDesk {
  readonly #loader: Loader;
  readonly #desk: TenantDesk<readonly Report[], Failure[]>;

  constructor(loader: Loader) {
    this.#loader = loader;
    this.#desk = new TenantDesk({
      apply: (tenant, items) => this.#apply(tenant, items),
      sizeOf: (reports) => reports.length,
      largestBatch,
      batchesAtOnce,
    });
  }

  /** Returns once all are applied, known to be stale, or named as failed: the worker sends those again. */
  async report(reports: readonly Report[]): Promise<Failure[]> {
    const { answers, failed } = await inParts(reports, async (tenant, some, withinMs) => {
      const pieces = this.#pieces(tenant, some).map((piece) => this.#desk.give(tenant, piece, withinMs));
      return (await Promise.all(pieces)).flat();
    });
    return [...answers.flat(), ...failed];
  }

  /** Neighbours stay together: parents of one child that are counted in two batches have one wait for the other. */
  #pieces(tenant: string, reports: readonly Report[]): (readonly Report[])[] {
    if (this.#desk.isBusy(tenant) || reports.length < batchesAtOnce * smallestPiece) return [reports];
    const half = Math.ceil(reports.length / 2);
    return [reports.slice(0, half), reports.slice(half)];
  }

  async #apply(tenant: string, items: readonly (readonly Report[])[]): Promise<Failure[][]> {
    const row = await this.#loader.byId(tenant).catch(unlessGone);
    const apply = async (reports: readonly Report[]): Promise<void> => {
      if (row !== undefined) await this.#loader.use(row.id, ({ engine, ctx }) => engine.report(ctx, reports));
    };
    const [only = []] = items;
    if (items.length === 1) return [await withoutRefused(only, apply)];
    await apply(items.flat());
    return items.map(() => []);
  }
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
