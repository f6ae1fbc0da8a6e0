/** Makes the input of a launcher's turn by hand: a world without tenants, and entries, hosts and slots for it. */
import type { Reason, ReasonCode } from '../../src/control/reasons.ts';
import { newId } from '../../src/kernel/id.ts';
import type { LaunchHost } from '../../src/launcher/launch-queries.ts';
import type { Launch, LaunchEntry } from '../../src/launcher/ledger.ts';
import type { Slot } from '../../src/launcher/slots.ts';
import type { World } from '../../src/launcher/turn.ts';

export const now = new Date('2026-06-01T00:00:00Z');
export const at = (seconds: number): Date => new Date(now.getTime() + seconds * 1_000);

/** A reason without a cause. */
export function because(code: ReasonCode): Reason {
  return { code, cause: 'none', data: {} };
}

export const failedLaunch: Launch = {
  state: 'DISABLED',
  reason: because('unreachable'),
  waitOn: null,
  version: '1',
  hostId: null,
  engine: '1',
  orderNo: 1,
  ordered: false,
  ending: false,
  failures: 1,
  suspicion: 0,
  retryAt: at(-1),
  changedAt: at(-2),
};

export function makeEntry(launch: Launch): LaunchEntry {
  const id = newId();
  const tenant = { id, name: id, database: id, databaseOid: 1, desired: 'on', discovered: false } as const;
  return {
    tenant: { ...tenant, ownHost: false },
    before: launch,
    launch,
    report: undefined,
    transactionIsOpen: false,
  };
}

export const makeHost = (id: string): LaunchHost => ({
  id,
  machine: 'here',
  pid: 1,
  engine: '1',
  leaving: false,
  onDemand: true,
  unsaid: [],
  startedAt: at(-60),
  beatMs: now.getTime(),
});

export const makeWorld = (more: Partial<World> = {}): World => ({
  now,
  launcherId: newId(),
  limit: 64,
  entries: [],
  hosts: [],
  slots: [],
  messages: [],
  sightings: [],
  presenceOf: () => 'there',
  findings: new Map(),
  mayJudge: true,
  known: new Map(),
  isNew: false,
  isRecovering: false,
  mostHosts: 9,
  keepsSpares: false,
  hostFaults: new Map(),
  ...more,
});

export const makeSlot = (holder: string, kind: Slot['kind']): Slot => ({
  id: newId(),
  kind,
  tenantId: newId(),
  holder,
  reason: 'scheduler',
  askedAt: at(-9),
  grantedAt: at(-8),
});
