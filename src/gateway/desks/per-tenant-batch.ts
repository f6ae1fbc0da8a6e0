/**
 * Applies a worker's batch per tenant: each tenant's part succeeds or fails by itself, and failed parts are listed, so that the
 * worker repeats only those. The answer comes within a time limit, which is shorter if several tenants share the batch.
 */
import type { Failure } from '../../contract/wire.ts';
import { knownError, MillraceError } from '../../errors.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { within } from '../../kernel/service.ts';

/** The time limit of a tenant that has the batch to itself, and of several tenants. */
const aloneMs = 5_000;
const togetherMs = 1_000;
/** Tenants that are called at the same time. A call that takes longer than `soonMs` no longer counts. */
const maxAtOnce = 32;
const soonMs = 100;

export interface Parts<R> {
  readonly answers: R[];
  readonly failed: Failure[];
}

export async function inParts<T extends { readonly tenant: string }, R>(
  items: readonly T[],
  call: (tenant: string, some: readonly T[], withinMs: number) => Promise<R>,
  longestMs = aloneMs,
): Promise<Parts<R>> {
  const parts = [...groupBy(items, (item) => item.tenant)];
  const limitMs = Math.min(longestMs, parts.length === 1 ? aloneMs : togetherMs);
  const answers: R[] = [];
  const failed: Failure[] = [];
  await eachWithin(limitMs, parts, async ([tenant, some], withinMs) => {
    try {
      if (withinMs <= 0) throw new MillraceError('tenant_unavailable', `tenant ${tenant} was not called in time`);
      answers.push(await call(tenant, some, withinMs));
    } catch (error) {
      failed.push(failureOf(tenant, error));
    }
  });
  return { answers, failed };
}

/** Calls the function for each item, a few at a time, with the remaining time. */
export async function eachWithin<T>(
  limitMs: number,
  items: readonly T[],
  call: (item: T, withinMs: number) => Promise<void>,
): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  const queue = [...items];
  const under: Promise<void>[] = [];
  const callNext = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      const calling = call(item, deadlineMs - performance.now());
      under.push(calling);
      await within(soonMs, calling);
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxAtOnce, items.length) }, callNext));
  await Promise.all(under);
}

export function failureOf(tenant: string, error: unknown): Failure {
  const code = knownError(error)?.code ?? 'tenant_unavailable';
  const detail = error instanceof Error ? error.message : String(error);
  return { tenant, code, detail: detail.slice(0, 1_000) };
}
