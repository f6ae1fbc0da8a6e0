/**
 * What a turn of the launcher has decided, written in one transaction that is conditional on its epoch. Where the database
 * refuses that, whoever's rows it refuses is found, and left out: no tenant keeps the others waiting.
 */
import { isConnectionLoss, sqlStateOf } from '../errors.ts';
import { append, type EventDraft, tenantTopic } from '../events/append.ts';
import type { Db } from '../kernel/sql.ts';
import {
  type Dismissed,
  dismissHosts,
  fenceHosts,
  holdTenants,
  noteHousekept,
  sendUnsent,
  writeLaunches,
  writeMessages,
  writeSlots,
} from './launch-queries.ts';
import { asLauncher, isTakenOver } from './lease.ts';
import type { Slot, SlotChanges } from './slots.ts';
import type { Change, Plan } from './turn.ts';
import { type FoundVersion, noteVersions } from './version-story.ts';

export interface PlanWrite {
  readonly plan: Plan;
  readonly epoch: number;
  readonly at: Date;
  readonly dismissed: Dismissed;
  /** Tenants that are left out: not long ago, what there was to be written of them was refused. */
  readonly without: ReadonlySet<string>;
  /** Those of them that are tried again, each by itself, after all others. */
  readonly again: readonly string[];
}

export interface Written {
  /** Whether anything has changed by it: then there may be more to do. */
  readonly any: boolean;
  /** By tenant, why nothing of it could be written. */
  readonly refused: ReadonlyMap<string, unknown>;
  /** Backends of lost hosts that may not be ended. */
  readonly left: readonly number[];
}

/** What is written together: of some tenants, and perhaps of none in particular. */
interface Part extends Pick<Plan, 'lost' | 'changes' | 'slots' | 'messages' | 'unsent' | 'served'> {
  readonly dismissed: Dismissed;
}

const nobody: Dismissed = { idle: [], needless: [] };

export async function writePlan(db: Db, wish: PlanWrite): Promise<Written> {
  const { plan, epoch, at, dismissed, without, again } = wish;
  const whole: Part = { ...plan, dismissed };
  const most = without.size === 0 ? whole : partOf(whole, (tenantId) => !without.has(tenantId ?? ''));
  const refused = new Map<string, unknown>();
  const left: number[] = [];
  let any = false;
  const write = async (part: Part): Promise<void> => {
    if (isEmpty(part)) return;
    const done = await asLauncher(db, epoch, (tx) => writePart(tx, part, at));
    any ||= done.any;
    left.push(...done.left);
  };
  await write(most).catch(async (error: unknown) => {
    if (!isRefused(error)) throw error;
    await write(partOf(most, (tenantId) => tenantId === null));
    await writeHalves(most, { tenantIds: tenantsOf(most), write, refused });
  });
  for (const tenantId of again) await writeHalves(whole, { tenantIds: [tenantId], write, refused });
  return { any, refused, left };
}

/** SQLSTATE, but of a server that lacks room or is at fault itself: nobody's rows are to blame for that. */
const answers = /^(?!25|53|54|57|58|XX)[0-9A-Z]{5}$/;

/** The database took the question and said no: asked without whoever is to blame, it would not. */
export function isRefused(error: unknown): boolean {
  return answers.test(sqlStateOf(error) ?? '') && !isConnectionLoss(error) && !isTakenOver(error);
}

interface Halving {
  readonly tenantIds: readonly string[];
  readonly write: (part: Part) => Promise<void>;
  readonly refused: Map<string, unknown>;
}

/** A few to blame among many are found in a few steps. */
async function writeHalves(part: Part, { tenantIds, write, refused }: Halving): Promise<void> {
  const [first] = tenantIds;
  if (first === undefined) return;
  const among = new Set(tenantIds);
  try {
    await write(partOf(part, (tenantId) => tenantId !== null && among.has(tenantId)));
  } catch (error) {
    if (!isRefused(error)) throw error;
    if (tenantIds.length === 1) {
      refused.set(first, error);
      return;
    }
    const half = Math.ceil(tenantIds.length / 2);
    await writeHalves(part, { tenantIds: tenantIds.slice(0, half), write, refused });
    await writeHalves(part, { tenantIds: tenantIds.slice(half), write, refused });
  }
}

/** `isIn` is asked of null for what is of no tenant. */
function partOf(whole: Part, isIn: (tenantId: string | null) => boolean): Part {
  const { lost, changes, slots, messages, unsent, served, dismissed } = whole;
  const ofSlots = (rows: readonly Slot[]): Slot[] => rows.filter(({ tenantId }) => isIn(tenantId));
  return {
    lost: isIn(null) ? lost : [],
    dismissed: isIn(null) ? dismissed : nobody,
    changes: changes.filter(({ entry }) => isIn(entry.tenant.id)),
    slots: { removed: ofSlots(slots.removed), added: ofSlots(slots.added), changed: ofSlots(slots.changed) },
    messages: messages.filter(({ tenantId }) => isIn(tenantId)),
    unsent: unsent.filter(({ tenantId }) => isIn(tenantId)),
    served: served.filter(isIn),
  };
}

function isEmpty({ lost, changes, slots, messages, unsent, dismissed }: Part): boolean {
  const slotChanges = slots.removed.length + slots.added.length + slots.changed.length;
  const hosts = lost.length + dismissed.idle.length + dismissed.needless.length;
  return hosts + changes.length + slotChanges + messages.length + unsent.length === 0;
}

function tenantsOf({ changes, slots, messages, unsent }: Part): string[] {
  const rows = [...slots.removed, ...slots.added, ...slots.changed, ...messages, ...unsent];
  return [
    ...new Set([...changes.map(({ entry }) => entry.tenant.id), ...rows.flatMap(({ tenantId }) => tenantId ?? [])]),
  ];
}

async function writePart(tx: Db, part: Part, at: Date): Promise<Omit<Written, 'refused'>> {
  const { lost, changes, slots, messages, unsent, served, dismissed } = part;
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
  if (served.length > 0) await noteHousekept(tx, served, at);
  if (messages.length > 0) await writeMessages(tx, messages);
  if (unsent.length > 0) await sendUnsent(tx, unsent, at);
  const isAny = dismissed.idle.length + dismissed.needless.length > 0;
  const leaving = isAny ? await dismissHosts(tx, dismissed) : 0;
  const untold = await noteVersions(tx, kept.filter(({ isFound }) => isFound).map(foundVersion));
  const drafts = kept.filter(({ isNews }) => isNews).map(draftOf);
  for (const actor of new Set(untold.map((each) => each.actor))) {
    const told = untold.filter((each) => each.actor === actor).map(({ draft }) => draft);
    await append(tx, tenantTopic, told, { actor, at });
  }
  if (drafts.length > 0) await append(tx, tenantTopic, drafts, { actor: 'installation', at });
  return { any: leaving > 0 || !isEmpty({ ...part, dismissed: nobody }), left };
}

function tenantsToHold(changes: readonly Change[], slots: SlotChanges): string[] {
  const ofSlots = slots.added.flatMap(({ tenantId }) => tenantId ?? []);
  return [...new Set([...changes.map(({ entry }) => entry.tenant.id), ...ofSlots])];
}

function foundVersion({ entry: { tenant }, launch }: Change): FoundVersion {
  return { tenantId: tenant.id, name: tenant.name, version: launch.version };
}

function draftOf({ entry: { tenant }, launch }: Change): EventDraft {
  const body = { name: tenant.name, state: launch.state, code: launch.code, reason: launch.reason };
  return { type: 'tenant.state', subject: tenant.id, body };
}
