/**
 * Reports of hosts on their orders become events of the state machine. A host that is silent, has ended or does not obey is
 * lost, and every scheduler with it.
 *
 * One of its tenants may be to blame. Most likely that is a tenant that the host was starting or ending, else one that it
 * had started lately: where there are such, they are suspected, otherwise all tenants of the host. A tenant that is the only
 * suspect is blamed, and waits before it is tried again. All others start again at once.
 */
import { silentMs } from '../../control/liveness.ts';
import type { LaunchHost } from '../launch-queries.ts';
import type { Launch, LaunchEntry, Ledger, Word } from '../ledger.ts';
import { reasons } from '../../control/reasons.ts';
import { afterRunning } from '../supervisor.ts';

/** A host that beats but does not answer an order for so long, and does not say that it cannot, is as good as lost. */
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
  const word = wordOn(entry, launch);
  const unanswered = launch.ending ? word?.phase !== 'ended' : launch.ordered && word === undefined;
  return unanswered && now - launch.changedAt.getTime() > unansweredMs;
}

/** A word on an older order says nothing of this one. */
function wordOn({ word }: LaunchEntry, { orderNo }: Launch): Word | undefined {
  return word?.orderNo === orderNo ? word : undefined;
}

/** It has run, and a part of it makes no progress. */
function hangs(word: Word | undefined): boolean {
  return word?.phase === 'starting' && word.code === 'failing';
}

/** A host that is about to end by itself says why of each of its schedulers: a word that it runs, with the code of an end. */
function howLost(host: LaunchHost, word: Word | undefined): string {
  if (word?.phase === 'running' && word.code === 'crashed' && word.reason !== null) return word.reason;
  if (host.fate !== undefined) return `its host ${host.fate}`;
  if (hasEnded(host)) return 'its host has ended';
  return `its host was lost: it was silent for ${silentMs / 1_000} s, or did not obey`;
}

/** `alive`: hosts that are not lost. Returns the tenants that ran in a lost host and are not blamed for the loss. */
export function hear(ledger: Ledger, alive: readonly LaunchHost[], lostOnes: readonly LaunchHost[]): Set<string> {
  const bereft = new Set<string>();
  const fates: Fates = { hosts: byId(alive), lost: byId(lostOnes), suspects: suspectsOf(ledger, lostOnes) };
  for (const [entry, launch] of ledger.launches()) {
    if (launch.ending) hearEnding(ledger, entry, launch, fates);
    else if (launch.ordered) {
      const { id } = entry.tenant;
      const lostHost = fates.lost.get(launch.hostId);
      const isBlamed = fates.suspects.get(id)?.isBlamed ?? false;
      if (lostHost !== undefined && isIn(lostHost, entry, launch) && !isBlamed) bereft.add(id);
      hearOrdered(ledger, entry, launch, fates);
    }
  }
  return bereft;
}

interface Fates {
  readonly hosts: ReadonlyMap<string | null, LaunchHost>;
  readonly lost: ReadonlyMap<string | null, LaunchHost>;
  /** Tenants that may have caused the loss of their host; `isBlamed`: it is the only suspect. */
  readonly suspects: ReadonlyMap<string, { readonly isBlamed: boolean }>;
}

/** A tenant that misbehaves mostly does so as it starts: for this long it is the first to be suspected. */
const recentMs = 10_000;

function suspectsOf(ledger: Ledger, lost: readonly LaunchHost[]): Fates['suspects'] {
  const suspects = new Map<string, { isBlamed: boolean }>();
  for (const host of lost) {
    const lostMs = hasEnded(host) ? ledger.now.getTime() : host.beatMs;
    const tenants = [...ledger.launches()].filter(([entry, launch]) => isIn(host, entry, launch));
    const underWay = tenants.filter(([{ word }, { ending, state }]) => ending || (state !== 'STARTED' && !hangs(word)));
    const recent = tenants.filter(([, { changedAt }]) => changedAt.getTime() > lostMs - recentMs);
    const suspected = [underWay, recent].find((some) => some.length > 0) ?? tenants;
    for (const [{ tenant }] of suspected) suspects.set(tenant.id, { isBlamed: suspected.length === 1 });
  }
  return suspects;
}

/** Whether the host has it, as far as is known: it has not said that it ended. */
function isIn({ id }: LaunchHost, entry: LaunchEntry, launch: Launch): boolean {
  return launch.hostId === id && (launch.ordered || launch.ending) && wordOn(entry, launch)?.phase !== 'ended';
}

function byId(hosts: readonly LaunchHost[]): Fates['hosts'] {
  return new Map(hosts.map((host) => [host.id, host]));
}

function hearEnding(ledger: Ledger, entry: LaunchEntry, launch: Launch, { hosts, suspects }: Fates): void {
  const { hostId, suspicion } = launch;
  if (hosts.has(hostId) && wordOn(entry, launch)?.phase !== 'ended') return;
  const isSuspect = suspects.has(entry.tenant.id);
  ledger.send(entry, { kind: 'scheduler_quit' }, isSuspect ? { suspicion: suspicion + 1 } : {});
}

function hearOrdered(ledger: Ledger, entry: LaunchEntry, launch: Launch, { hosts, lost, suspects }: Fates): void {
  const word = wordOn(entry, launch);
  const lostHost = lost.get(launch.hostId);
  if (word?.phase === 'ended') {
    ledger.quit(entry, {
      code: word.code ?? 'crashed',
      detail: word.reason ?? 'its scheduler has ended',
      ofHost: true,
    });
  } else if (lostHost !== undefined) {
    const suspect = suspects.get(entry.tenant.id);
    if (suspect !== undefined) ledger.set(entry, { suspicion: launch.suspicion + 1 });
    const fate = { isBlamed: suspect?.isBlamed ?? false };
    ledger.quit(entry, { code: 'crashed', detail: howLost(lostHost, word), lost: fate });
  } else if (!hosts.has(launch.hostId)) {
    ledger.quit(entry, { code: 'stopping', detail: 'its host has left' });
  } else if (hangs(word)) {
    const { code, text } = reasons.failing(word?.reason ?? 'its host does not say why');
    ledger.send(entry, { kind: 'scheduler_hangs' }, { code, reason: text });
  } else if (launch.state === 'STARTED') {
    ledger.set(entry, afterRunning(launch, ledger.now.getTime() - launch.changedAt.getTime()));
  } else if (word?.phase === 'running') {
    ledger.send(entry, { kind: 'scheduler_started' }, { code: null, reason: null, retryAt: null });
  } else if (word?.reason) {
    entry.pending = word.reason === reasons.starting.text ? reasons.starting : reasons.startingAfter(word.reason);
  }
}
