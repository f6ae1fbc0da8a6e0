/**
 * Reports of hosts on their orders become events of the state machine. A host that is silent, has ended or does not obey is
 * lost, and every scheduler with it.
 * `blame.ts` decides which of its tenants are suspected. All but a tenant that was alone in its host start again at once.
 */
import { silentMs } from '../../control/liveness.ts';
import { judgeLoss, type Verdict } from './blame.ts';
import type { LaunchHost } from '../launch-queries.ts';
import type { Launch, LaunchEntry, Ledger, OrderReport } from '../ledger.ts';
import { boundText, type Reason, reasons } from '../../control/reasons.ts';
import { afterRunning } from '../supervisor.ts';

/** A host that beats but does not answer an order for this long counts as lost, unless it reports that it cannot write. */
const unansweredMs = 30_000;

/** `mayJudge`: this launcher has itself been awake, so that silence means something. */
export function lostHosts(ledger: Ledger, hosts: readonly LaunchHost[], mayJudge: boolean): LaunchHost[] {
  const now = ledger.now.getTime();
  const unsaid = new Map<string | null, ReadonlySet<string>>(hosts.map((host) => [host.id, new Set(host.unsaid)]));
  const deaf = new Set<string | null>();
  for (const [entry, launch] of ledger.launches())
    if (isUnanswered(entry, launch, now) && !unsaid.get(launch.hostId)?.has(entry.tenant.id)) deaf.add(launch.hostId);
  return hosts.filter((host) => hasEnded(host) || (mayJudge && (now - host.beatMs > silentMs || deaf.has(host.id))));
}

/** Its process is known to be gone, or has said that it goes. */
function hasEnded({ beatMs }: LaunchHost): boolean {
  return beatMs === Number.NEGATIVE_INFINITY;
}

function isUnanswered(entry: LaunchEntry, launch: Launch, now: number): boolean {
  const report = reportOn(entry, launch);
  const unanswered = launch.ending ? report?.phase !== 'ended' : launch.ordered && report === undefined;
  return unanswered && now - launch.changedAt.getTime() > unansweredMs;
}

/** A report on an older order means nothing for this one. */
function reportOn({ report }: LaunchEntry, { orderNo }: Launch): OrderReport | undefined {
  return report?.orderNo === orderNo ? report : undefined;
}

/** It has run, and a part of it makes no progress. */
function hangs(report: OrderReport | undefined): boolean {
  return report?.phase === 'starting' && report.reason?.code === 'failing';
}

/** A host that is about to end by itself reports why: its schedulers run, with the reason of a crash. */
function explainLoss(host: LaunchHost, report: OrderReport | undefined): Reason {
  if (report?.phase === 'running' && report.reason?.code === 'crashed') return report.reason;
  const code = 'crashed';
  if (host.fate !== undefined) return { code, cause: 'host_ended', data: { how: boundText(host.fate) } };
  if (hasEnded(host)) return { code, cause: 'host_ended', data: { how: null } };
  return { code, cause: 'host_silent', data: { seconds: silentMs / 1_000 } };
}

/** `alive`: hosts that are not lost. Returns the tenants that ran in a lost host and are not blamed for the loss. */
export function applyReports(
  ledger: Ledger,
  alive: readonly LaunchHost[],
  lostOnes: readonly LaunchHost[],
): Set<string> {
  const bereft = new Set<string>();
  const fates: Fates = { hosts: byId(alive), lost: byId(lostOnes), verdicts: judgeLosses(ledger, lostOnes) };
  for (const [entry, launch] of ledger.launches()) {
    if (launch.ending) applyToEnding(ledger, entry, launch, fates);
    else if (launch.ordered) {
      const { id } = entry.tenant;
      const lostHost = fates.lost.get(launch.hostId);
      const isBlamed = fates.verdicts.get(id)?.isBlamed ?? false;
      if (lostHost !== undefined && isIn(lostHost, entry, launch) && !isBlamed) bereft.add(id);
      applyToOrdered(ledger, entry, launch, fates);
    }
  }
  return bereft;
}

interface Fates {
  readonly hosts: ReadonlyMap<string | null, LaunchHost>;
  readonly lost: ReadonlyMap<string | null, LaunchHost>;
  readonly verdicts: ReadonlyMap<string, Verdict>;
}

function judgeLosses(ledger: Ledger, lost: readonly LaunchHost[]): Fates['verdicts'] {
  const verdicts = lost.map((host) => {
    const tenants = [...ledger.launches()].filter(([entry, launch]) => isIn(host, entry, launch));
    const passengers = tenants.map(([{ tenant, report }, { suspicion, changedAt }]) => {
      return { tenantId: tenant.id, suspicion, steppedMs: changedAt.getTime(), hangs: hangs(report) };
    });
    return judgeLoss(passengers, hasEnded(host) ? ledger.now.getTime() : host.beatMs);
  });
  return new Map(verdicts.flatMap((each) => [...each]));
}

/** Whether the host has it, as far as is known: no report says that it ended. */
function isIn({ id }: LaunchHost, entry: LaunchEntry, launch: Launch): boolean {
  return launch.hostId === id && (launch.ordered || launch.ending) && reportOn(entry, launch)?.phase !== 'ended';
}

function byId(hosts: readonly LaunchHost[]): Fates['hosts'] {
  return new Map(hosts.map((host) => [host.id, host]));
}

const endedSilently: Reason = { code: 'crashed', cause: 'none', data: {} };

function applyToEnding(ledger: Ledger, entry: LaunchEntry, launch: Launch, { hosts, verdicts }: Fates): void {
  if (hosts.has(launch.hostId) && reportOn(entry, launch)?.phase !== 'ended') return;
  const { suspicion = launch.suspicion } = verdicts.get(entry.tenant.id) ?? {};
  ledger.send(entry, { kind: 'scheduler_quit' }, { suspicion });
}

function applyToOrdered(ledger: Ledger, entry: LaunchEntry, launch: Launch, { hosts, lost, verdicts }: Fates): void {
  const report = reportOn(entry, launch);
  const lostHost = lost.get(launch.hostId);
  if (report?.phase === 'ended') {
    ledger.quit(entry, { reason: report.reason ?? endedSilently, ofHost: true });
  } else if (lostHost !== undefined) {
    const { suspicion = launch.suspicion, isBlamed = false } = verdicts.get(entry.tenant.id) ?? {};
    ledger.set(entry, { suspicion });
    ledger.quit(entry, { reason: explainLoss(lostHost, report), lost: { isBlamed } });
  } else if (!hosts.has(launch.hostId)) {
    ledger.quit(entry, { reason: reasons.hostLeft });
  } else if (hangs(report)) {
    ledger.send(entry, { kind: 'scheduler_hangs' }, { reason: report?.reason ?? null });
  } else if (launch.state === 'STARTED') {
    ledger.set(entry, afterRunning(launch, ledger.now.getTime() - launch.changedAt.getTime()));
  } else if (report?.phase === 'running') {
    ledger.send(entry, { kind: 'scheduler_started' }, { reason: null, retryAt: null });
  } else if (report?.reason) {
    entry.pending = { ...report.reason, code: 'starting' };
  }
}
