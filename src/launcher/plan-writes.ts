/** What a turn of the launcher has decided, written in one transaction that is conditional on its epoch. */
import { append, type EventDraft } from '../events/append.ts';
import type { Db } from '../kernel/sql.ts';
import {
  dismissHosts,
  fenceHosts,
  holdTenants,
  sendUnsent,
  writeLaunches,
  writeMessages,
  writeSlots,
} from './launch-queries.ts';
import { asLauncher } from './lease.ts';
import type { SlotChanges } from './slots.ts';
import type { Change, Plan } from './turn.ts';

const tenantTopic = 1;

export interface PlanWrite {
  readonly plan: Plan;
  readonly epoch: number;
  readonly at: Date;
  /** Hosts that have had no tenant for long enough. */
  readonly dismissed: readonly string[];
}

/** Whether there was anything to write. */
export async function writePlan(db: Db, { plan, epoch, at, dismissed }: PlanWrite): Promise<boolean> {
  const { lost, changes, slots, messages, unsent } = plan;
  const slotChanges = slots.removed.length + slots.added.length + slots.changed.length;
  const rows = lost.length + changes.length + slotChanges + messages.length + unsent.length + dismissed.length;
  if (rows === 0) return false;
  await asLauncher(db, epoch, async (tx) => {
    if (lost.length > 0)
      await fenceHosts(
        tx,
        lost.map(({ id }) => id),
      );
    const there = await holdTenants(tx, tenantsOf(changes, slots));
    const kept = changes.filter(({ entry }) => there.has(entry.tenant.id));
    if (kept.length > 0)
      await writeLaunches(
        tx,
        kept.map(({ entry, launch }) => [entry.tenant.id, launch]),
      );
    const added = slots.added.filter(({ tenantId }) => tenantId === null || there.has(tenantId));
    await writeSlots(tx, { ...slots, added });
    if (messages.length > 0) await writeMessages(tx, messages);
    if (unsent.length > 0) await sendUnsent(tx, unsent, at);
    if (dismissed.length > 0) await dismissHosts(tx, dismissed);
    const drafts = kept.filter(({ isNews }) => isNews).map(draftOf);
    if (drafts.length > 0) await append(tx, tenantTopic, drafts, { actor: 'installation', at });
  });
  return true;
}

function tenantsOf(changes: readonly Change[], slots: SlotChanges): string[] {
  const ofSlots = slots.added.flatMap(({ tenantId }) => tenantId ?? []);
  return [...new Set([...changes.map(({ entry }) => entry.tenant.id), ...ofSlots])];
}

function draftOf({ entry: { tenant }, launch }: Change): EventDraft {
  const body = { name: tenant.name, state: launch.state, code: launch.code, reason: launch.reason };
  return { type: 'tenant.state', subject: tenant.id, body };
}
