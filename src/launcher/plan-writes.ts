/**
 * Writes the decisions of a turn in one transaction that is conditional on the launcher's epoch. If the database rejects it, the
 * tenants whose rows are rejected are found and left out, so that no tenant keeps the others waiting.
 */
import { isStatementRejection } from '../errors.ts';
import { append, type EventDraft, tenantTopic } from '../events/append.ts';
import { formatReason } from '../control/format-reason.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import { type Db, sql } from '../kernel/sql.ts';
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
import type { Slot, SlotChanges } from './slots.ts';
import type { Change, Plan } from './turn.ts';
import { type FoundVersion, noteVersions } from './version-audit.ts';

/** The owner of rows: a tenant's id, or null for rows that belong to no tenant, such as hosts. */
export type Whose = string | null;

export interface PlanWrite {
  readonly plan: Plan;
  readonly epoch: number;
  readonly at: Date;
  /** Idle hosts that are told to leave. */
  readonly dismissed: readonly string[];
  /** Owners that are left out, because their rows were rejected recently. */
  readonly without: ReadonlySet<Whose>;
  /** Owners among them that are retried, each by itself, after all others. */
  readonly again: readonly Whose[];
}

export interface Written {
  /** Whether anything was written: then there may be more to do. */
  readonly any: boolean;
  /** Owners whose rows were rejected, with the error. */
  readonly refused: ReadonlyMap<Whose, unknown>;
  /** The plan without the owners that were rejected or left out. */
  readonly plan: Plan;
  /** Backends of lost hosts that our role may not end. */
  readonly left: readonly number[];
}

/** Decisions that are written in one transaction. */
interface Part extends Pick<Plan, 'lost' | 'changes' | 'slots' | 'messages' | 'unsent'> {
  readonly dismissed: readonly string[];
}

/** Lock timeout of all attempts after the first, so that isolating locked rows does not take long. */
const isolationLockTimeout = '100ms';

export async function writePlan(db: Db, wish: PlanWrite): Promise<Written> {
  const { plan, epoch, at, dismissed, without, again } = wish;
  const whole: Part = { ...plan, dismissed };
  const left: number[] = [];
  let any = false;
  let isFirst = true;
  const write = async (some: readonly Whose[]): Promise<void> => {
    const among = new Set(some);
    const part = partOf(whole, (whose) => among.has(whose));
    if (isEmpty(part)) return;
    const isIsolating = !isFirst;
    isFirst = false;
    const done = await asLauncher(db, epoch, async (tx) => {
      if (isIsolating) await tx.exec(sql`select set_config('lock_timeout', ${isolationLockTimeout}, true)`);
      return writePart(tx, part, at);
    });
    any ||= done.any;
    left.push(...done.left);
  };
  const most = ownersIn(whole).filter((whose) => !without.has(whose));
  const isolate = (some: readonly Whose[]): Promise<Map<Whose, unknown>> =>
    isolateRejected(some, write, { isRejection: isStatementRejection });
  const refused = await isolate(most);
  isFirst = false;
  for (const whose of again) for (const [each, error] of await isolate([whose])) refused.set(each, error);
  const isIn = (whose: Whose): boolean => !refused.has(whose) && (!without.has(whose) || again.includes(whose));
  return { any, refused, left, plan: planOf(plan, isIn) };
}

/** Nothing is carried out for owners that are left out: it would be repeated every turn. */
function planOf(plan: Plan, isIn: (whose: Whose) => boolean): Plan {
  return {
    ...plan,
    ...partOf({ ...plan, dismissed: [] }, isIn),
    changedOrders: plan.changedOrders.filter(({ tenantId }) => isIn(tenantId)),
    hinted: new Set([...plan.hinted].filter(isIn)),
    forget: new Set([...plan.forget].filter(isIn)),
    sighted: plan.sighted.filter(({ tenantId }) => isIn(tenantId)),
  };
}

/** `isIn` is called with null for rows that belong to no tenant. */
function partOf(whole: Part, isIn: (whose: Whose) => boolean): Part {
  const { lost, changes, slots, messages, unsent, dismissed } = whole;
  const ofSlots = (rows: readonly Slot[]): Slot[] => rows.filter(({ tenantId }) => isIn(tenantId));
  return {
    lost: isIn(null) ? lost : [],
    dismissed: isIn(null) ? dismissed : [],
    changes: changes.filter(({ entry }) => isIn(entry.tenant.id)),
    slots: { removed: ofSlots(slots.removed), added: ofSlots(slots.added), changed: ofSlots(slots.changed) },
    messages: messages.filter(({ tenantId }) => isIn(tenantId)),
    unsent: unsent.filter(({ tenantId }) => isIn(tenantId)),
  };
}

function isEmpty({ lost, changes, slots, messages, unsent, dismissed }: Part): boolean {
  const slotChanges = slots.removed.length + slots.added.length + slots.changed.length;
  const hosts = lost.length + dismissed.length;
  return hosts + changes.length + slotChanges + messages.length + unsent.length === 0;
}

/** Rows that belong to no tenant come first: lost hosts are fenced before their tenants move to others. */
function ownersIn({ lost, changes, slots, messages, unsent, dismissed }: Part): Whose[] {
  const rows = [...slots.removed, ...slots.added, ...slots.changed, ...messages, ...unsent];
  const ids = new Set([...changes.map(({ entry }) => entry.tenant.id), ...rows.map(({ tenantId }) => tenantId)]);
  const hasOwnerless = lost.length + dismissed.length > 0;
  return [...(hasOwnerless || ids.has(null) ? [null] : []), ...[...ids].filter((id) => id !== null)];
}

async function writePart(tx: Db, part: Part, at: Date): Promise<Pick<Written, 'any' | 'left'>> {
  const { lost, changes, slots, messages, unsent, dismissed } = part;
  const { left } = await fenceHosts(
    tx,
    lost.map(({ id }) => id),
  );
  const there = await holdTenants(tx, tenantsToHold(changes, slots));
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
  const leaving = dismissed.length > 0 ? await dismissHosts(tx, dismissed) : 0;
  const versionEvents = await noteVersions(tx, kept.filter(({ isFound }) => isFound).map(foundVersion));
  const drafts = kept.filter(({ isNews }) => isNews).map(draftOf);
  for (const actor of new Set(versionEvents.map((each) => each.actor))) {
    const ofActor = versionEvents.filter((each) => each.actor === actor).map(({ draft }) => draft);
    await append(tx, tenantTopic, ofActor, { actor, at });
  }
  if (drafts.length > 0) await append(tx, tenantTopic, drafts, { actor: 'installation', at });
  return { any: leaving > 0 || !isEmpty({ ...part, dismissed: [] }), left };
}

function tenantsToHold(changes: readonly Change[], slots: SlotChanges): string[] {
  const ofSlots = slots.added.flatMap(({ tenantId }) => tenantId ?? []);
  return [...new Set([...changes.map(({ entry }) => entry.tenant.id), ...ofSlots])];
}

function foundVersion({ entry: { tenant }, launch }: Change): FoundVersion {
  return { tenantId: tenant.id, name: tenant.name, version: launch.version };
}

function draftOf({ entry: { tenant }, launch }: Change): EventDraft {
  const { state, reason } = launch;
  const sentence = reason === null ? null : formatReason(reason);
  const body = { name: tenant.name, state, code: reason?.code ?? null, reason: sentence };
  return { type: 'tenant.state', subject: tenant.id, body };
}
