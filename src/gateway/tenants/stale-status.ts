/**
 * Detects outdated states. Only the launcher writes states: while none is active, a tenant stays STARTED after its scheduler has
 * ended. The last report of its host, or the silence of that host, shows the end.
 */
import { formatCause, formatPlainReason } from '../../control/format-reason.ts';
import type { ReasonCode } from '../../control/reasons.ts';
import type { TenantState } from './queries.ts';

export interface Absence {
  readonly code: ReasonCode | 'silent';
  readonly since: Date | null;
  /** For the list of tenants. */
  readonly full: string;
  /** For callers without a key: no names of machines, no messages of the engine. */
  readonly plain: string;
  /** Completes "the scheduler has". */
  readonly has: string;
}

/** Undefined: its scheduler runs, or its state already shows that it does not. */
export function absenceOf(tenant: TenantState): Absence | undefined {
  const { state, host, hostIsSilent, endedAt } = tenant;
  if (state !== 'STARTED') return undefined;
  if (endedAt !== null) return explainEnd(tenant, endedAt);
  return host === null || hostIsSilent ? explainSilence(tenant) : undefined;
}

function explainEnd({ endReason }: TenantState, since: Date): Absence {
  const reason = endReason ?? ({ code: 'crashed', cause: 'none', data: {} } as const);
  const when = `ended at ${since.toISOString()}`;
  const full = `${when}: ${formatCause(reason)}`;
  return { code: reason.code, since, full, plain: `${when}: ${formatPlainReason(reason)}`, has: full };
}

function explainSilence({ host, heardAt }: TenantState): Absence {
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
