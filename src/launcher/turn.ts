/**
 * One turn of the launcher, as a pure function: from the rows that were read to the rows to write, and the actions to take
 * once these are committed. The order: reports of hosts, then messages one by one, then supervision, and last the automatic
 * transitions (slots, starts).
 */
import { isDeepStrictEqual } from 'node:util';
import { applyReports, lostHosts } from './hosts/host-events.ts';
import { demandHosts, type HostDemand } from './hosts/host-demand.ts';
import { Inbox } from './inbox.ts';
import type { LaunchHost, OpenMessage, Unsent } from './launch-queries.ts';
import { type ChangedOrder, type Launch, type LaunchEntry, Ledger } from './ledger.ts';
import type { Finding } from '../loader/inspections.ts';
import { type Reason, reasons } from '../control/reasons.ts';
import { type Slot, type SlotChanges, Slots } from './slots.ts';
import type { HostFault } from './hosts/spawning.ts';
import { applyFinding, moveToOwnHosts, recordVersion, startReason, startTenants } from './start-tenants.ts';
import { care, isFailing, keepsSlot, type Presence } from './supervisor.ts';
import { keyOf, type Sighting } from './discovery/watch.ts';

export interface World {
  /** By the server's clock. */
  readonly now: Date;
  readonly launcherId: string;
  readonly limit: number;
  readonly entries: readonly LaunchEntry[];
  readonly hosts: readonly LaunchHost[];
  readonly slots: readonly Slot[];
  readonly messages: readonly OpenMessage[];
  readonly sightings: readonly Sighting[];
  readonly presenceOf: (entry: LaunchEntry) => Presence;
  readonly findings: ReadonlyMap<string, Finding>;
  readonly mayJudge: boolean;
  /** Sightings that were handled in earlier turns, with their tenants. */
  readonly known: ReadonlyMap<string, string | null>;
  /** This launcher has just become active. */
  readonly isNew: boolean;
  /** The control database's server is reachable again, after an outage. */
  readonly isRecovering: boolean;
  /** Maximum number of hosts per engine. Tenants' own hosts do not count. */
  readonly mostHosts: number;
  /** Keep an empty spare host for each engine whose tenants share a host. */
  readonly keepsSpares: boolean;
  /** Why hosts of an engine fail to start, by engine. */
  readonly hostFaults: ReadonlyMap<string, HostFault>;
}

export interface Change {
  readonly entry: LaunchEntry;
  readonly launch: Launch;
  /** State or reason have changed, and not only because of a retry: the change is logged and gets an event. */
  readonly isNews: boolean;
  /** The version was inspected, and may have changed. */
  readonly isFound: boolean;
}

export interface Plan extends HostDemand {
  readonly lost: readonly LaunchHost[];
  readonly changes: readonly Change[];
  readonly slots: SlotChanges;
  readonly messages: readonly OpenMessage[];
  readonly unsent: readonly Unsent[];
  /** After the commit: orders whose hosts are notified, and tenants whose connections are closed. */
  readonly changedOrders: readonly ChangedOrder[];
  readonly hinted: ReadonlySet<string>;
  /** Sightings that this plan handles; null: of no tenant. */
  readonly sighted: readonly { readonly key: string; readonly tenantId: string | null }[];
  readonly looks: readonly { readonly entry: LaunchEntry; readonly idle: boolean }[];
  readonly forget: ReadonlySet<string>;
  /** The next time by the server's clock that something is due. */
  readonly dueAt: Date | undefined;
}

export function decide(world: World): Plan {
  const slots = new Slots(world.slots, world.limit, world.now);
  const ledger = new Ledger(world.entries, slots, world.now);
  const inbox = new Inbox(world.messages, world.now);
  const lost = lostHosts(ledger, world.hosts, world.mayJudge);
  const lostIds = new Set(lost.map(({ id }) => id));
  const alive = world.hosts.filter(({ id }) => !lostIds.has(id));
  slots.keepLauncher(world.launcherId);
  const bereft = applyReports(ledger, alive, lost);
  const about = inbox.take(ledger);
  const findings = findingsOf(world, about, alive);
  for (const [tenantId, finding] of assumedFindings(ledger, bereft, alive))
    if (!about.has(tenantId) && !findings.has(tenantId)) findings.set(tenantId, finding);
  if (world.isRecovering) hastenStarts(ledger, world);
  const supervised = supervise(ledger, world, findings);
  moveToOwnHosts(ledger, alive);
  grantSlots(ledger);
  const sightings = new Map(world.sightings.map((sighting) => [sighting.databaseOid, sighting]));
  const isElsewhere = (entry: LaunchEntry): boolean => world.presenceOf(entry) === 'unlisted';
  const { mostHosts, hostFaults } = world;
  const starts = startTenants(ledger, { hosts: alive, findings, sightings, isElsewhere, mostHosts, hostFaults });
  explainAll(ledger);
  inbox.settle(ledger);
  const { unsent, hinted, sighted } = unsentOf(ledger, world);
  if (world.isNew) for (const entry of ledger.entries.values()) noteSoon(entry, ledger);
  return {
    lost,
    changes: changesOf(ledger),
    slots: slots.changes(),
    messages: inbox.changes(),
    unsent,
    sighted,
    hinted: new Set([...hinted, ...changedTenants(ledger)]),
    changedOrders: ledger.changedOrders,
    looks: [...looksOf(ledger, starts.looks), ...supervised.looks],
    forget: new Set([...about, ...starts.used, ...supervised.used]),
    ...demandHosts(ledger, alive, { missing: starts.missing, mostHosts, keepsSpares: world.keepsSpares }),
    dueAt: dueAt(ledger),
  };
}

/** Findings that still hold. An engine that a live host runs is usable, even if this machine does not have it. */
function findingsOf(
  { findings }: World,
  about: ReadonlySet<string>,
  alive: readonly LaunchHost[],
): Map<string, Finding> {
  const engines = enginesOf(alive);
  const isRun = (finding: Finding): boolean => finding.kind === 'installed' && engines.has(finding.version);
  return new Map(
    [...findings]
      .filter(([tenantId]) => !about.has(tenantId))
      .map(([tenantId, finding]) => [tenantId, isRun(finding) ? { ...finding, engine: { ok: true } } : finding]),
  );
}

/**
 * A tenant that has just lost its host is assumed to be at the version that it ran at, and starts without an inspection. Its
 * next host checks the version before it does anything.
 */
function assumedFindings(
  ledger: Ledger,
  tenantIds: ReadonlySet<string>,
  alive: readonly LaunchHost[],
): Map<string, Finding> {
  const engines = enginesOf(alive);
  const findings = new Map<string, Finding>();
  for (const [{ tenant }, { engine }] of ledger.launches())
    if (tenantIds.has(tenant.id) && engine !== null && engines.has(engine))
      findings.set(tenant.id, { kind: 'installed', version: engine, engine: { ok: true } });
  return findings;
}

function enginesOf(alive: readonly LaunchHost[]): ReadonlySet<string> {
  return new Set(alive.filter(({ leaving }) => !leaving).map(({ engine }) => engine));
}

/** Steps that need no message. */
function supervise(
  ledger: Ledger,
  world: World,
  findings: ReadonlyMap<string, Finding>,
): { readonly looks: Plan['looks'][number][]; readonly used: string[] } {
  const looks: Plan['looks'][number][] = [];
  const used: string[] = [];
  for (const entry of ledger.entries.values()) {
    const { tenant, launch } = entry;
    const { state, ending = false, reason = null, retryAt = null } = launch ?? {};
    const presence = world.presenceOf(entry);
    const due = care({ desired: tenant.desired, presence, state, ending, reason, retryAt }, world.now);
    if (due.kind === 'register') ledger.send(entry, { kind: 'discovered' }, startReason(launch));
    else if (due.kind === 'start') ledger.send(entry, { kind: 'start' }, { ...startReason(launch), retryAt: null });
    else if (due.kind === 'stop') ledger.send(entry, { kind: 'stop' }, { reason: due.reason, retryAt: null });
    else if (due.kind === 'look' || due.kind === 'note') {
      const finding = findings.get(tenant.id);
      if (finding === undefined) looks.push({ entry, idle: isIdle(launch) });
      else {
        (due.kind === 'look' ? applyFinding : recordVersion)(ledger, entry, finding);
        if (entry.launch?.state === 'DISABLED') used.push(tenant.id);
      }
    }
  }
  // a turn may inspect fewer than are due: the longest overdue come first
  const dueMs = ({ entry }: Plan['looks'][number]): number => entry.launch?.retryAt?.getTime() ?? 0;
  return { looks: looks.toSorted((a, b) => dueMs(a) - dueMs(b)), used };
}

/** Pause between two attempts of a tenant while its server recovers. */
const hastenedMs = 200;

/** Ends the pauses of unreachable tenants on the control database's server, because that server answers again. */
function hastenStarts(ledger: Ledger, { presenceOf }: World): void {
  for (const [entry, launch] of ledger.launches()) {
    const { reason, retryAt } = launch;
    const soon = new Date(ledger.now.getTime() + hastenedMs);
    if (reason?.code !== 'unreachable' || retryAt === null || retryAt <= soon || presenceOf(entry) === 'unlisted')
      continue;
    ledger.set(entry, { retryAt: soon, failures: Math.min(launch.failures, 1) });
  }
}

/** After a short outage of their server, tenants are inspected at once; after a longer one, a few at a time. */
function isIdle(launch: Launch | undefined): boolean {
  return launch?.reason?.code !== 'unreachable' || launch.failures > 1;
}

/** Tenants found at another version than before, or without Millrace: engines that processes hold for them are stale. */
function changedTenants(ledger: Ledger): string[] {
  const changed: string[] = [];
  for (const [{ tenant, before }, launch] of ledger.launches()) {
    const was = before?.version ?? null;
    if (was !== null && was !== launch.version && isKnown(before, launch)) changed.push(tenant.id);
  }
  return changed;
}

/** Without a version, a tenant is not installed or could not be inspected. Only the former is a change. */
function isKnown(before: Launch | undefined, { version, reason }: Launch): boolean {
  const code = reason?.code;
  return version !== null || code === 'not_installed' || (code === 'stopped_by_user' && before?.reason?.code === code);
}

function isFound(before: Launch | undefined, launch: Launch): boolean {
  const isSame = before?.version === launch.version && before.reason?.code === launch.reason?.code;
  return !isSame && isKnown(before, launch);
}

/** ENABLED → ALLOCATED. */
function grantSlots(ledger: Ledger): void {
  const { slots, entries } = ledger;
  const launchOf = (tenantId: string): Launch | undefined => entries.get(tenantId)?.launch;
  slots.free((tenantId) => {
    const launch = launchOf(tenantId);
    return launch !== undefined && (launch.state !== 'DISABLED' || launch.ending || keepsSlot(launch));
  });
  // the limit was lowered: the newest lose their slots and wait in line
  const stays = (tenantId: string): boolean => isUp(launchOf(tenantId));
  for (const tenantId of slots.surplus(stays)) {
    const entry = entries.get(tenantId);
    if (entry === undefined) continue;
    // no user has stopped it, so it still waits for the same transaction
    const { waitOn = null } = entry.launch ?? {};
    ledger.send(entry, { kind: 'stop' });
    ledger.send(entry, { kind: 'start' }, { waitOn });
  }
  for (const [entry, { state, ending }] of ledger.launches())
    if (state !== 'DISABLED' && !ending) slots.ask(entry.tenant.id);
  slots.grant();
  // tenants that have just got a slot, or have kept theirs since a failure
  for (const [entry, { state, ending }] of ledger.launches())
    if (state === 'ENABLED' && !ending && slots.ofScheduler(entry.tenant.id)?.grantedAt)
      ledger.send(entry, { kind: 'slot_reserved' });
}

function isUp(launch: Launch | undefined): boolean {
  return launch?.state === 'ALLOCATED' || launch?.state === 'STARTED';
}

/** Transactions that no message announced: one restart for each. */
function unsentOf(
  ledger: Ledger,
  world: World,
): Pick<Plan, 'unsent' | 'sighted'> & { readonly hinted: ReadonlySet<string> } {
  const byOid = new Map<number | null, LaunchEntry>();
  for (const entry of ledger.entries.values())
    if (world.presenceOf(entry) !== 'unlisted') byOid.set(entry.tenant.databaseOid, entry);
  const unsent: Unsent[] = [];
  const hinted = new Set<string>();
  const sighted: Plan['sighted'][number][] = [];
  for (const sighting of world.sightings) {
    const entry = byOid.get(sighting.databaseOid);
    const key = keyOf(sighting);
    sighted.push({ key, tenantId: entry?.tenant.id ?? null });
    if (entry === undefined || world.known.has(key)) continue;
    hinted.add(entry.tenant.id);
    const isOut = entry.tenant.desired === 'off' || world.presenceOf(entry) !== 'there';
    if (!isOut) unsent.push(restartFor(entry, sighting));
    // it is not started, but its version may have changed when the transaction is over
    else if (sighting.what !== 'database' && entry.launch !== undefined) ledger.set(entry, { retryAt: null });
  }
  const keys = new Set(sighted.map(({ key }) => key));
  for (const [key, tenantId] of world.known) if (!keys.has(key)) noteSoon(ledger.entries.get(tenantId ?? ''), ledger);
  return { unsent, hinted, sighted };
}

/** Makes an inspection of a tenant that is off due: a transaction has ended, or may have while no launcher was active. */
function noteSoon(entry: LaunchEntry | undefined, ledger: Ledger): void {
  if (entry?.tenant.desired === 'off' && entry.launch !== undefined) ledger.set(entry, { retryAt: null });
}

const doings: Readonly<Record<Sighting['what'], string>> = {
  drain: 'a migration is under way',
  database: 'its database is being dropped, renamed, copied or moved',
  tables: 'its tables are locked',
};

function restartFor({ tenant }: LaunchEntry, { what, pid, xid }: Sighting): Unsent {
  const who = pid === null ? 'a prepared transaction' : `pid ${pid}`;
  return { tenantId: tenant.id, tenant: tenant.name, cause: `${doings[what]} (${who})`, xid, pid };
}

/** Inspections of tenants that shall start. */
function looksOf(ledger: Ledger, waiting: readonly string[]): Plan['looks'] {
  return waiting.flatMap((tenantId) => {
    const entry = ledger.entries.get(tenantId);
    return entry === undefined ? [] : { entry, idle: false };
  });
}

/** Every state that is not STARTED has a reason. */
function explainAll(ledger: Ledger): void {
  const positions = ledger.slots.positions();
  for (const [entry, launch] of ledger.launches()) {
    const reason = explain(entry, launch, positions.get(entry.tenant.id));
    ledger.set(entry, { reason });
  }
}

function explain(entry: LaunchEntry, launch: Launch, position: number | undefined): Reason | null {
  const { state, reason, ending } = launch;
  if (state === 'STARTED') return null;
  if (ending && (state !== 'DISABLED' || entry.tenant.desired === 'off')) return reasons.stopping;
  if (state === 'ENABLED' && position !== undefined) return reasons.noSlot(position);
  // a tenant that is retried keeps the code of its failure until it runs, with the cause of its present wait
  const isRetried = state === 'ALLOCATED' && isFailing(reason);
  if (state === 'ALLOCATED' && entry.pending !== undefined) {
    const { pending } = entry;
    if (!isRetried || reason === null || pending.code !== 'starting') return pending;
    return pending.cause === 'none' ? reason : { ...pending, code: reason.code };
  }
  return state !== 'ALLOCATED' || isRetried ? (reason ?? reasons.starting) : reasons.starting;
}

function changesOf(ledger: Ledger): Change[] {
  const changes: Change[] = [];
  for (const [entry, launch] of ledger.launches()) {
    const { before } = entry;
    if (before !== undefined && isSame(before, launch)) continue;
    const moved = before === undefined || hasMoved(before, launch);
    entry.launch = moved ? { ...launch, changedAt: ledger.now } : launch;
    changes.push({
      entry,
      launch: entry.launch,
      isNews: before === undefined || isNews(before, launch),
      isFound: isFound(before, launch),
    });
  }
  return changes;
}

function isSame(before: Launch, launch: Launch): boolean {
  return isDeepStrictEqual(before, { ...launch, changedAt: before.changedAt });
}

/** Whether the state, reason or order has changed. */
function hasMoved(before: Launch, launch: Launch): boolean {
  return (
    before.state !== launch.state ||
    before.reason?.code !== launch.reason?.code ||
    before.ending !== launch.ending ||
    before.orderNo !== launch.orderNo
  );
}

/** A tenant that fails repeatedly is not reported at every attempt. */
function isNews(before: Launch, launch: Launch): boolean {
  const isOther = before.reason?.code !== launch.reason?.code;
  return isOther || (before.state !== launch.state && !isFailing(launch.reason));
}

function dueAt(ledger: Ledger): Date | undefined {
  let first: Date | undefined;
  for (const [{ tenant }, { retryAt, state }] of ledger.launches()) {
    if (retryAt === null || tenant.desired === 'off' || state === 'STARTED') continue;
    if (retryAt > ledger.now && (first === undefined || retryAt < first)) first = retryAt;
  }
  return first;
}
