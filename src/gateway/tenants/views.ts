/** Tenants and messages as the API shows them. */
import type { z } from 'zod';
import type { SentMessage } from '../../control/messages.ts';
import { formatCause, formatReason } from '../../control/format-reason.ts';
import { reasons } from '../../control/reasons.ts';
import { absenceOf } from './stale-status.ts';
import { type Circumstances, formatWithNextTry, standingOf } from './standing.ts';
import type { messageView, tenantView } from './endpoints.ts';
import type { TenantState } from './queries.ts';

type TenantView = z.input<typeof tenantView>;
type MessageView = z.input<typeof messageView>;

/**
 * Every state has a reason, except STARTED of a running scheduler. A missing launcher is part of every reason. While the control
 * database rejects writes, states may be outdated; for STARTED, that is the reason.
 */
export function renderTenant(tenant: TenantState, circumstances: Circumstances): TenantView {
  const { id, name, database, desired, version, host, retryAt, changedAt, createdAt } = tenant;
  return {
    id,
    name,
    database,
    desired,
    ...standingOf(tenant, circumstances),
    ...stateOf(tenant, circumstances),
    version,
    host,
    own_host: tenant.ownHost,
    trouble: tenant.trouble === null ? null : formatCause(tenant.trouble),
    failures: tenant.failures ?? 0,
    retry_at: retryAt?.toISOString() ?? null,
    changed_at: (changedAt ?? createdAt).toISOString(),
    created_at: createdAt.toISOString(),
  };
}

function stateOf(
  tenant: TenantState,
  { launcherActive, fault }: Circumstances,
): Pick<TenantView, 'state' | 'reason' | 'reason_code'> {
  const { state, desired } = tenant;
  const code = tenant.reason?.code ?? null;
  const noLauncher = launcherActive ? null : formatReason(reasons.noLauncher);
  const withLauncher = (reason: string | null): string | null =>
    [reason, noLauncher].filter((text) => text !== null).join('; ') || null;
  if (state === 'STARTED' && fault !== undefined) return { state, reason: fault.detail, reason_code: 'database' };
  if (state === 'STARTED') {
    const absence = absenceOf(tenant);
    return { state, reason: withLauncher(absence?.full ?? null), reason_code: absence?.code ?? null };
  }
  // the last launcher left this reason: it is shown once, and not at all if another launcher is active
  if (tenant.reason?.cause === 'no_launcher')
    return { state: state ?? 'ENABLED', reason: noLauncher ?? formatReason(reasons.starting), reason_code: code };
  if (state !== null) return { state, reason: withLauncher(reasonOf(tenant)), reason_code: code };
  if (desired === 'off')
    return { state: 'DISABLED', reason: withLauncher(reasonOf(tenant)), reason_code: 'stopped_by_user' };
  const unseen = 'starting: no launcher has looked at it yet';
  return { state: 'ENABLED', reason: withLauncher(unseen), reason_code: 'starting' };
}

/** A drop stops the tenant first, without a stop message. */
function reasonOf(tenant: TenantState): string {
  const { state, reason, leaving } = tenant;
  const isStopped = state === null || reason?.code === 'stopped_by_user';
  if (isStopped) return leaving ? 'stopped to be dropped' : formatReason(reasons.stoppedByUser);
  return formatWithNextTry(tenant);
}

export function renderMessage(message: SentMessage): MessageView {
  const { id, kind, sender, cause, xid, sentAt, deadline, outcome, detail, acknowledgedAt, settledAt } = message;
  return {
    id,
    kind,
    sender,
    cause,
    transaction: xid,
    sent_at: sentAt.toISOString(),
    deadline: deadline.toISOString(),
    outcome,
    detail,
    acknowledged_at: acknowledgedAt?.toISOString() ?? null,
    settled_at: settledAt?.toISOString() ?? null,
  };
}
