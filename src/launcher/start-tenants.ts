/**
 * ALLOCATED → STARTED: a tenant that has a slot is inspected and given to a host that runs its version, or waits for the end
 * of a transaction. Nothing here waits: missing inspections and hosts are requested, and the next turn continues.
 */
import type { LaunchHost } from './launch-queries.ts';
import type { Launch, LaunchEntry, Ledger } from './ledger.ts';
import type { Finding } from '../loader/inspections.ts';
import { type Guest, place, type Room } from './hosts/placement.ts';
import { boundText, noEngine, type Reason, reasons } from '../control/reasons.ts';
import type { HostFault } from './hosts/spawning.ts';
import { afterQuit, isDue, isFailing, nextNoteAt, type Quit } from './supervisor.ts';
import type { Sighting } from './discovery/watch.ts';

export interface StartsWorld {
  /** Live hosts. */
  readonly hosts: readonly LaunchHost[];
  readonly findings: ReadonlyMap<string, Finding>;
  /** database oid → the transaction that is changing the database */
  readonly sightings: ReadonlyMap<number, Sighting>;
  readonly isElsewhere: (entry: LaunchEntry) => boolean;
  readonly mostHosts: number;
  readonly hostFaults: ReadonlyMap<string, HostFault>;
}

export interface Starts {
  /** Tenants to inspect. */
  readonly looks: readonly string[];
  /** Tenants whose findings have been acted upon. */
  readonly used: readonly string[];
  /** engine → how many more hosts are needed */
  readonly missing: ReadonlyMap<string, number>;
}

export function startTenants(ledger: Ledger, world: StartsWorld): Starts {
  const looks: string[] = [];
  const used: string[] = [];
  const ready: { entry: LaunchEntry; guest: Guest }[] = [];
  for (const [entry, launch] of ledger.launches()) {
    if (launch.state !== 'ALLOCATED' || launch.ordered || launch.ending) continue;
    const wait = findBlocker(entry, launch, world) ?? findPause(launch, ledger.now);
    if (wait !== undefined) {
      entry.pending = wait;
      continue;
    }
    const finding = world.findings.get(entry.tenant.id);
    if (finding === undefined) looks.push(entry.tenant.id);
    else if (finding.kind === 'migrating')
      entry.pending = launch.waitOn === null ? reasons.migration : reasons.waitingOn(launch.waitOn);
    else if (finding.kind === 'locked') entry.pending = reasons.lockedTables;
    else if (finding.kind === 'installed' && finding.engine?.ok)
      ready.push({ entry, guest: guestOf(entry, finding.version) });
    else if (finding.kind !== 'gone' || world.isElsewhere(entry)) {
      used.push(entry.tenant.id);
      ledger.quit(entry, quitOf(finding));
      ledger.set(entry, { version: versionOf(finding) });
    }
  }
  const { ordered, missing } = giveToHosts(ledger, ready, world);
  return { looks, used: [...used, ...ordered], missing };
}

/** While a transaction changes a database, none of our processes connects to it. */
function findBlocker(entry: LaunchEntry, launch: Launch, world: StartsWorld): Reason | undefined {
  if (world.isElsewhere(entry)) return undefined;
  const sighting = world.sightings.get(entry.tenant.databaseOid ?? 0);
  if (sighting !== undefined) return reasons.waitingOnTransaction(sighting);
  // whether a transaction is open is read at the start of a turn: one that is new is checked in the next turn
  const isNew = launch.waitOn !== (entry.before?.waitOn ?? null);
  return launch.waitOn !== null && (isNew || entry.transactionIsOpen) ? reasons.waitingOn(launch.waitOn) : undefined;
}

/** The reason was recorded when the pause began. */
function findPause({ retryAt, reason }: Launch, now: Date): Reason | undefined {
  if (isDue(retryAt, now)) return undefined;
  return reason?.code === 'starting' ? reason : reasons.starting;
}

/** The reason of a start. A tenant that is retried keeps the reason of its failure until it runs. */
export function startReason(launch: Launch | undefined): Partial<Launch> {
  return isFailing(launch?.reason) ? {} : { reason: reasons.starting };
}

/** Acts on the inspection of a tenant that is DISABLED and wanted: starts it if that is possible, else updates the reason. */
export function applyFinding(ledger: Ledger, entry: LaunchEntry, finding: Finding): void {
  const isBusy = finding.kind === 'migrating' || finding.kind === 'locked';
  const startable = isBusy || (finding.kind === 'installed' && finding.engine?.ok);
  if (startable) {
    ledger.send(entry, { kind: 'start' }, { ...startReason(entry.launch), retryAt: null });
  } else {
    const { reason = null, failures = 0, changedAt = ledger.now } = entry.launch ?? {};
    const quit = quitOf(finding);
    const forMs = quit.reason.code === reason?.code ? ledger.now.getTime() - changedAt.getTime() : 0;
    const retry = afterQuit({ ...quit, forMs, among: ledger.uninstalled }, failures, ledger.now);
    ledger.set(entry, { ...retry, version: versionOf(finding) });
  }
}

/** Records the version of a tenant that is switched off. */
export function recordVersion(ledger: Ledger, entry: LaunchEntry, finding: Finding): void {
  const retryAt = nextNoteAt(finding.kind, ledger.now);
  const isKnown = finding.kind === 'installed' || finding.kind === 'not_installed';
  ledger.set(entry, isKnown ? { retryAt, version: versionOf(finding) } : { retryAt });
}

function versionOf(finding: Finding): string | null {
  return finding.kind === 'installed' ? finding.version : null;
}

function quitOf(finding: Finding): Quit {
  if (finding.kind === 'unreachable') return { reason: finding.reason };
  if (finding.kind === 'gone') return { reason: reasons.gone };
  if (finding.kind === 'not_installed') return { reason: reasons.notInstalled };
  const engine = finding.kind === 'installed' ? finding.engine : undefined;
  return { reason: noEngine(engine?.ok === false ? engine : { detail: 'none was found' }) };
}

function guestOf(entry: LaunchEntry, engine: string): Guest {
  const { tenant, launch } = entry;
  const { suspicion = 0, failures = 0 } = launch ?? {};
  const isBlamed = suspicion > 0 && failures > 0;
  return { tenantId: tenant.id, engine, suspicion, ownHost: tenant.ownHost, isBlamed, failedAt: lastHostOf(entry) };
}

/** The host in which its last attempt failed. The fault may be the host's, or its machine's. */
function lastHostOf({ report, launch }: LaunchEntry): string | null {
  const hasFailed = report?.phase === 'ended' && report.orderNo === launch?.orderNo && launch.failures > 0;
  return hasFailed ? report.hostId : null;
}

/** Hosts that accept tenants, with their present tenants. A tenant that is ending still counts. */
export function roomsOf(ledger: Ledger, hosts: readonly LaunchHost[]): Room[] {
  const guests = new Map<string, Guest[]>(hosts.map(({ id }) => [id, []]));
  for (const [entry, launch] of ledger.launches())
    if (launch.hostId !== null && (launch.ordered || launch.ending))
      guests.get(launch.hostId)?.push(guestOf(entry, launch.engine ?? ''));
  return hosts
    .filter(({ leaving }) => !leaving)
    .map(({ id, engine, hadSuspect = false }) => ({ hostId: id, engine, guests: guests.get(id) ?? [], hadSuspect }));
}

function giveToHosts(
  ledger: Ledger,
  ready: readonly { readonly entry: LaunchEntry; readonly guest: Guest }[],
  { hosts, mostHosts, hostFaults }: StartsWorld,
): { readonly ordered: string[]; readonly missing: ReadonlyMap<string, number> } {
  const { placed, missing } = place(
    ready.map(({ guest }) => guest),
    roomsOf(ledger, hosts),
    // if no further host can be started, the existing ones share the tenants
    (engine) => (hostFaults.get(engine)?.isPausing ? 0 : mostHosts),
  );
  const ordered: string[] = [];
  for (const { entry, guest } of ready) {
    const hostId = placed.get(guest.tenantId);
    ledger.set(entry, { version: guest.engine });
    if (hostId === undefined) {
      entry.pending = missingHost(guest.engine, hostFaults.get(guest.engine));
      continue;
    }
    const orderNo = (entry.launch?.orderNo ?? 0) + 1;
    ledger.send(entry, { kind: 'scheduler_ordered' }, { hostId, engine: guest.engine, orderNo });
    ledger.slots.note(guest.tenantId, { holder: hostId, reason: 'scheduler' });
    ledger.changedOrders.push({ hostId, tenantId: guest.tenantId });
    ordered.push(guest.tenantId);
  }
  return { ordered, missing };
}

function missingHost(engine: string, fault: HostFault | undefined): Reason {
  if (fault?.engineFault !== undefined) return noEngine({ detail: fault.engineFault });
  if (fault === undefined) return { code: 'starting', cause: 'no_room', data: { engine } };
  return { code: 'starting', cause: 'hosts_end', data: { how: boundText(fault.how), times: fault.times } };
}

/** Moves tenants that must have their own host but share one, by a restart in their slot. */
export function moveToOwnHosts(ledger: Ledger, hosts: readonly LaunchHost[]): void {
  for (const { guests } of roomsOf(ledger, hosts).filter((room) => room.guests.length > 1))
    for (const { tenantId } of guests.filter(({ ownHost }) => ownHost)) {
      const entry = ledger.entries.get(tenantId);
      if (entry?.launch?.state === 'STARTED') ledger.send(entry, { kind: 'restart', transaction: null });
    }
}
