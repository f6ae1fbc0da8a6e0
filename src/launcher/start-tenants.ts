/**
 * ALLOCATED → STARTED: whoever has a slot is looked at, given to a host that runs its version, or waits for the end of a
 * transaction. Nothing here waits: what is missing is asked for, and the next turn goes on from there.
 */
import type { LaunchHost } from './launch-queries.ts';
import type { Launch, LaunchEntry, Ledger } from './ledger.ts';
import type { Finding } from '../loader/inspections.ts';
import { type Guest, place, type Room } from './hosts/placement.ts';
import { type Reason, reasons } from '../control/reasons.ts';
import type { HostFault } from './hosts/spawning.ts';
import { afterQuit, isFailing, nextNoteAt, type Quit } from './supervisor.ts';
import { nameOf, type Sighting } from './discovery/watch.ts';

export interface StartsWorld {
  /** Alive. */
  readonly hosts: readonly LaunchHost[];
  readonly findings: ReadonlyMap<string, Finding>;
  /** By the database's oid: who is at work on it. */
  readonly sightings: ReadonlyMap<number, Sighting>;
  readonly isElsewhere: (entry: LaunchEntry) => boolean;
  readonly mostHosts: number;
  readonly hostFaults: ReadonlyMap<string, HostFault>;
}

export interface Starts {
  /** Tenants to look at. */
  readonly looks: readonly string[];
  /** Tenants whose findings have been acted upon. */
  readonly used: readonly string[];
  /** engine → how many more hosts are needed */
  readonly missing: ReadonlyMap<string, number>;
}

export function seeToStarts(ledger: Ledger, world: StartsWorld): Starts {
  const looks: string[] = [];
  const used: string[] = [];
  const ready: { entry: LaunchEntry; guest: Guest }[] = [];
  for (const [entry, launch] of ledger.launches()) {
    if (launch.state !== 'ALLOCATED' || launch.ordered || launch.ending) continue;
    const wait = whatFor(entry, launch, world) ?? untilWhen(launch, ledger.now);
    if (wait !== undefined) {
      entry.pending = wait;
      continue;
    }
    const finding = world.findings.get(entry.tenant.id);
    if (finding === undefined) looks.push(entry.tenant.id);
    else if (finding.kind === 'migrating') entry.pending = reasons.waitingOn(launch.waitOn ?? 'of a migration');
    else if (finding.kind === 'locked') entry.pending = reasons.waitingOn('that has locked its tables');
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

/** Nobody connects to a database while a transaction is at work on it. */
function whatFor(entry: LaunchEntry, launch: Launch, world: StartsWorld): Reason | undefined {
  if (world.isElsewhere(entry)) return undefined;
  const sighting = world.sightings.get(entry.tenant.databaseOid ?? 0);
  if (sighting !== undefined) return reasons.waitingOn(nameOf(sighting));
  // what has been said in this turn is looked into in the next
  const isNew = launch.waitOn !== (entry.before?.waitOn ?? null);
  return launch.waitOn !== null && (isNew || entry.transactionIsOpen) ? reasons.waitingOn(launch.waitOn) : undefined;
}

/** The cause was recorded when the pause began. */
function untilWhen({ retryAt, code, reason }: Launch, now: Date): Reason | undefined {
  if (retryAt === null || retryAt <= now) return undefined;
  return code === 'starting' && reason !== null ? { code, text: reason } : reasons.starting;
}

/** One that is tried again has failed until it runs: only then is it news that it does. */
export function begun(launch: Launch | undefined): Partial<Launch> {
  return isFailing(launch?.code ?? null) ? {} : { code: reasons.starting.code, reason: reasons.starting.text };
}

/** A look at one that is DISABLED and wanted: it is started where it could be, else the reason is as it is now. */
export function seeToFinding(ledger: Ledger, entry: LaunchEntry, finding: Finding): void {
  const isBusy = finding.kind === 'migrating' || finding.kind === 'locked';
  const startable = isBusy || (finding.kind === 'installed' && finding.engine?.ok);
  if (startable) {
    ledger.send(entry, { kind: 'start' }, { ...begun(entry.launch), retryAt: null });
  } else {
    const { code, failures = 0, changedAt = ledger.now } = entry.launch ?? {};
    const quit = quitOf(finding);
    const forMs = quit.code === code ? ledger.now.getTime() - changedAt.getTime() : 0;
    const { reason, ...rest } = afterQuit({ ...quit, forMs, among: ledger.uninstalled }, failures, ledger.now);
    ledger.set(entry, { code: reason.code, reason: reason.text, ...rest, version: versionOf(finding) });
  }
}

/** A look at one that is switched off. */
export function seeToNote(ledger: Ledger, entry: LaunchEntry, finding: Finding): void {
  const retryAt = nextNoteAt(finding.kind, ledger.now);
  const isKnown = finding.kind === 'installed' || finding.kind === 'not_installed';
  ledger.set(entry, isKnown ? { retryAt, version: versionOf(finding) } : { retryAt });
}

function versionOf(finding: Finding): string | null {
  return finding.kind === 'installed' ? finding.version : null;
}

function quitOf(finding: Finding): Quit {
  if (finding.kind === 'unreachable') return { code: finding.kind, detail: finding.detail };
  if (finding.kind === 'gone' || finding.kind === 'not_installed') return { code: finding.kind, detail: '' };
  const engine = finding.kind === 'installed' ? finding.engine : undefined;
  return { code: 'no_engine', detail: engine?.ok === false ? engine.detail : 'none was found' };
}

function guestOf(entry: LaunchEntry, engine: string): Guest {
  const { tenant, launch } = entry;
  const { suspicion = 0, failures = 0 } = launch ?? {};
  const isBlamed = suspicion > 0 && failures > 0;
  return { tenantId: tenant.id, engine, suspicion, ownHost: tenant.ownHost, isBlamed, failedAt: lastHostOf(entry) };
}

/** The host that has just failed it; it may be the host's fault, or its machine's. */
function lastHostOf({ word, launch }: LaunchEntry): string | null {
  const hasFailed = word?.phase === 'ended' && word.orderNo === launch?.orderNo && launch.failures > 0;
  return hasFailed ? word.hostId : null;
}

/** Hosts that take tenants, with those they have; one that is ending is still there. */
export function roomsOf(ledger: Ledger, hosts: readonly LaunchHost[]): Room[] {
  const guests = new Map<string, Guest[]>(hosts.map(({ id }) => [id, []]));
  for (const [entry, launch] of ledger.launches())
    if (launch.hostId !== null && (launch.ordered || launch.ending))
      guests.get(launch.hostId)?.push(guestOf(entry, launch.engine ?? ''));
  return hosts
    .filter(({ leaving }) => !leaving)
    .map(({ id, engine }) => ({ hostId: id, engine, guests: guests.get(id) ?? [] }));
}

function giveToHosts(
  ledger: Ledger,
  ready: readonly { readonly entry: LaunchEntry; readonly guest: Guest }[],
  { hosts, mostHosts, hostFaults }: StartsWorld,
): { readonly ordered: string[]; readonly missing: ReadonlyMap<string, number> } {
  const { placed, missing } = place(
    ready.map(({ guest }) => guest),
    roomsOf(ledger, hosts),
    // where no further one comes to be, those that are there have to do
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
    ledger.told.push({ hostId, tenantId: guest.tenantId });
    ordered.push(guest.tenantId);
  }
  return { ordered, missing };
}

function missingHost(engine: string, fault: HostFault | undefined): Reason {
  if (fault?.engineFault !== undefined) return reasons.noEngine(fault.engineFault);
  return reasons.startingAfter(fault?.text ?? `no host of version ${engine} has room yet`);
}

/** A tenant that was given a host for itself, and shares one, goes to another: by a restart, in the slot that it has. */
export function seeToOwnHosts(ledger: Ledger, hosts: readonly LaunchHost[]): void {
  for (const { guests } of roomsOf(ledger, hosts).filter((room) => room.guests.length > 1))
    for (const { tenantId } of guests.filter(({ ownHost }) => ownHost)) {
      const entry = ledger.entries.get(tenantId);
      if (entry?.launch?.state === 'STARTED') ledger.send(entry, { kind: 'restart', transaction: null });
    }
}
