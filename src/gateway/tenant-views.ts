/** Tenants and messages as the API shows them. */
import type { z } from 'zod';
import type { SentMessage } from '../launcher/messages.ts';
import type { messageView as messageShape, tenantView as tenantShape } from './tenant-endpoints.ts';
import type { TenantState } from './tenant-queries.ts';

type TenantView = z.input<typeof tenantShape>;
type MessageView = z.input<typeof messageShape>;

/** Every state but STARTED has a reason; and while no launcher is active, that is part of it. */
export function tenantView(tenant: TenantState, launcherActive: boolean): TenantView {
  const { id, name, database, desired, version, host, retryAt, changedAt, createdAt } = tenant;
  return {
    id,
    name,
    database,
    desired,
    ...stateOf(tenant, launcherActive),
    version,
    host,
    own_host: tenant.ownHost,
    failures: tenant.failures ?? 0,
    retry_at: retryAt?.toISOString() ?? null,
    changed_at: (changedAt ?? createdAt).toISOString(),
    created_at: createdAt.toISOString(),
  };
}

function stateOf(tenant: TenantState, launcherActive: boolean): Pick<TenantView, 'state' | 'reason' | 'reason_code'> {
  const { state, code, reason, desired } = tenant;
  if (state === 'STARTED') return { state, reason: null, reason_code: null };
  const more = launcherActive ? '' : '; no launcher is active';
  if (state !== null) return { state, reason: `${reason ?? ''}${more}`, reason_code: code };
  if (desired === 'off') return { state: 'DISABLED', reason: `stopped by user${more}`, reason_code: 'stopped_by_user' };
  return { state: 'ENABLED', reason: `starting: no launcher has looked at it yet${more}`, reason_code: 'starting' };
}

export function messageView(message: SentMessage): MessageView {
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
