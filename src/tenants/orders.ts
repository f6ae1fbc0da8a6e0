/**
 * Start, stop and restart by a user. The desired state and the message to the launcher are one commit. A stop lasts until a
 * user starts or restarts the tenant.
 */
import { everyone } from '../contract/channels.ts';
import { MillraceError } from '../errors.ts';
import type { MessageKind } from '../control/messages.ts';
import { type Actor, announceTo, requireTenant, type Life, type Ordered, outcome, record, wishFor } from './life.ts';
import * as queries from './queries.ts';

const pastTense = { start: 'started', stop: 'stopped', restart: 'restarted' } as const satisfies Record<
  MessageKind,
  string
>;

/** Returns as soon as the message is sent. */
export async function order(
  life: Life,
  name: string,
  { kind, actor }: Actor & { readonly kind: MessageKind },
): Promise<Ordered> {
  const row = await requireTenant(life, name);
  const messageId = await life.control.transaction(async (tx) => {
    if (!(await queries.setDesired(tx, row.id, kind === 'stop' ? 'off' : 'on')))
      throw new MillraceError('not_found', `there is no tenant ${name} any more`);
    const id = await wishFor(life, tx, row, { kind, cause: `${kind} by hand`, actor });
    const body = { name, from: row.desired, to: kind === 'stop' ? 'off' : 'on' };
    await record(life, tx, { type: `tenant.${pastTense[kind]}`, tenantId: row.id, body, actor });
    return id;
  });
  announceTo(life);
  // gateways read the tenant again: they hand out no runs of a tenant that is off. They keep their connections
  life.hub.send('tenant', row.id);
  return outcome(life, row.id, messageId, 0);
}

/** A running tenant moves at once. */
export async function giveOwnHost(
  life: Life,
  name: string,
  { ownHost, actor }: Actor & { readonly ownHost: boolean },
): Promise<void> {
  const row = await requireTenant(life, name);
  await life.control.transaction(async (tx) => {
    if (!(await queries.setOwnHost(tx, row.id, ownHost))) return;
    if (row.desired === 'on') {
      const cause = ownHost ? 'a host of its own' : 'a host that it shares';
      await wishFor(life, tx, row, { kind: 'restart', cause, actor });
    }
    await record(life, tx, { type: 'tenant.changed', tenantId: row.id, body: { name, own_host: ownHost }, actor });
  });
  announceTo(life);
}

export async function slotLimit({ control, slotLimit: standard }: Life): Promise<number> {
  return (await queries.readSlotLimit(control)) ?? standard;
}

/** Takes effect at once. */
export async function limitSlots(life: Life, { limit, actor }: Actor & { readonly limit: number }): Promise<void> {
  await life.control.transaction(async (tx) => {
    const from = (await queries.readSlotLimit(tx)) ?? life.slotLimit;
    await queries.writeSlotLimit(tx, limit, { at: new Date(life.time.now()), actor });
    const body = { name: 'max_background_workers', from, to: limit };
    await record(life, tx, { type: 'slots.limited', tenantId: null, body, actor });
  });
  life.hub.send('host_reports', everyone);
}
