/** Tenants and messages as the API shows them. */
import type { z } from 'zod';
import type { SentMessage } from '../../control/messages.ts';
import { reasons } from '../../control/reasons.ts';
import { absenceOf } from './stale-status.ts';
import { type Circumstances, formatReason, standingOf } from './standing.ts';
import type { messageView, tenantView } from './endpoints.ts';
import type { TenantState } from './queries.ts';

type TenantView = z.input<typeof tenantView>;
type MessageView = z.input<typeof messageView>;

/**
 * Every state has a reason, except STARTED of a scheduler that runs. A missing launcher is part of every reason. While the
 * control database takes no writes, states are old, and that is the reason of those that say STARTED.
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
    trouble: tenant.trouble,
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
  const { state, code, desired } = tenant;
  const said = (reason: string | null): string | null => withLauncher(reason, launcherActive);
  if (state === 'STARTED' && fault !== undefined) return { state, reason: fault.detail, reason_code: 'database' };
  if (state === 'STARTED') {
    const absence = absenceOf(tenant);
    return { state, reason: said(absence?.full ?? null), reason_code: absence?.code ?? null };
  }
  if (state !== null) return { state, reason: said(reasonOf(tenant)), reason_code: code };
  if (desired === 'off') return { state: 'DISABLED', reason: said(reasonOf(tenant)), reason_code: 'stopped_by_user' };
  return { state: 'ENABLED', reason: said('starting: no launcher has looked at it yet'), reason_code: 'starting' };
}

/** Dropping a tenant stops it first, without a request to stop. */
function reasonOf(tenant: TenantState): string {
  const { state, code, leaving } = tenant;
  const isStopped = state === null || code === 'stopped_by_user';
  if (isStopped) return leaving ? 'stopped to be dropped' : reasons.stoppedByUser.text;
  return formatReason(tenant);
}

/** What the last launcher has left behind may say that none is active: that is said once, and no more when one is. */
function withLauncher(reason: string | null, launcherActive: boolean): string | null {
  const { text } = reasons.noLauncher;
  if (launcherActive) return reason === text ? reasons.starting.text : reason;
  return reason === null || reason === text ? text : `${reason}; ${text}`;
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
