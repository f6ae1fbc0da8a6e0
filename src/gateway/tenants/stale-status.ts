/**
 * Only the launcher writes states. Where none is active, a tenant stays STARTED though its scheduler is gone: what hosts have
 * said, and since when they say nothing, tells so.
 */
import { plainReason, type ReasonCode } from '../../control/reasons.ts';
import type { TenantState } from './queries.ts';

export interface Absence {
  readonly code: ReasonCode | 'silent';
  readonly since: Date | null;
  /** In the list of tenants. */
  readonly full: string;
  /** The same for callers without a key: no names of machines, no words of the engine. */
  readonly plain: string;
  /** What the scheduler has done, or has not. */
  readonly has: string;
}

/** Undefined: its scheduler runs, or its state says that it does not. */
export function absenceOf(tenant: TenantState): Absence | undefined {
  const { state, host, hostIsSilent, endedAt } = tenant;
  if (state !== 'STARTED') return undefined;
  if (endedAt !== null) return ended(tenant, endedAt);
  return host === null || hostIsSilent ? silent(tenant) : undefined;
}

function ended({ endedCode, endedBecause }: TenantState, since: Date): Absence {
  const words = `ended at ${since.toISOString()}: ${endedBecause ?? 'its host does not say why'}`;
  const code = endedCode ?? 'crashed';
  const plain = `ended at ${since.toISOString()}: ${plainReason(code, endedBecause ?? '')}`;
  return { code, since, full: words, plain, has: words };
}

function silent({ host, heardAt }: TenantState): Absence {
  const when = heardAt === null ? '' : ` since ${heardAt.toISOString()}`;
  const why = host === null ? 'its host has left' : `its host (${host.machine}, process ${host.pid}) is silent`;
  return {
    code: 'silent',
    since: heardAt,
    full: `not heard of${when}: ${why}`,
    plain: `not heard of${when}: its host ${host === null ? 'has left' : 'is silent'}`,
    has: `not been heard of${when}: ${why}`,
  };
}
