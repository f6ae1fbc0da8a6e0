/**
 * A worker's batch, answered in parts: each tenant's part is for itself, and what could not be done is named, so that the
 * worker sends only that again. The answer comes in time whatever a tenant does, and sooner where others share the batch.
 */
import type { Failure } from '../../contract/wire.ts';
import { knownError, MillraceError } from '../../errors.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { within } from '../../kernel/service.ts';

/** A tenant that has the batch to itself keeps nobody waiting. */
const aloneMs = 5_000;
const togetherMs = 1_000;
/** So many tenants are called at the same time; one that does not answer soon no longer counts. */
const mostAtOnce = 32;
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

/** Calls for each, a few at a time, with what is left of the time. */
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
  await Promise.all(Array.from({ length: Math.min(mostAtOnce, items.length) }, callNext));
  await Promise.all(under);
}

export function failureOf(tenant: string, error: unknown): Failure {
  const code = knownError(error)?.code ?? 'tenant_unavailable';
  const detail = error instanceof Error ? error.message : String(error);
  return { tenant, code, detail: detail.slice(0, 1_000) };
}
