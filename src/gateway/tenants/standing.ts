/**
 * The standing of a tenant: its short status in the API, the command line and the web interface.
 *
 * - `runs`: its scheduler runs. "runs, but …" names faults that do not stop it.
 * - `will_run`: it should run but does not. It starts by itself once the reason is gone.
 * - `off`: it does not run until a person acts. A person stopped it, or its database cannot have a scheduler.
 *
 * Each cause is worded twice. The full wording is for keys of the tenant. The plain one is for callers without a key: it has no
 * messages of a server or an engine, and no names of machines or people.
 */
import type { Life } from '../../tenants/life.ts';
import { isLauncherActive } from '../../tenants/queries.ts';
import { formatCause, formatPlainReason, formatReason } from '../../control/format-reason.ts';
import { type Reason, type ReasonCode, reasons } from '../../control/reasons.ts';
import type { DatabaseFault } from '../../postgres/database-health.ts';
import { absenceOf } from './stale-status.ts';
import type { TenantState } from './queries.ts';

export const standings = ['runs', 'will_run', 'off'] as const;

export interface Standing {
  readonly standing: (typeof standings)[number];
  readonly summary: string;
}

interface Cause {
  readonly full: string;
  readonly plain: string;
}

export interface Causes {
  readonly standing: Standing['standing'];
  /** With `runs`: faults that do not stop it. Otherwise the reasons why it does not run, at least one. */
  readonly causes: readonly Cause[];
}

export interface Circumstances {
  readonly launcherActive: boolean;
  /** The fault of the control database, as this process observes it. */
  readonly fault: DatabaseFault | undefined;
  readonly clockFault?: string | undefined;
}

export async function readCircumstances({ control, databaseFault, clockFault }: Life): Promise<Circumstances> {
  const fault = databaseFault();
  return { launcherActive: await isLauncherActive(control), fault, clockFault: clockFault?.() };
}

const prefixes = { runs: 'runs, but ', will_run: 'will run: ', off: 'off: ' } as const;

export function standingOf(tenant: TenantState, circumstances: Circumstances): Standing {
  const { standing, causes } = causesOf(tenant, circumstances);
  if (causes.length === 0) return { standing, summary: 'runs' };
  return { standing, summary: prefixes[standing] + causes.map(({ full }) => full).join('; ') };
}

export function causesOf(tenant: TenantState, circumstances: Circumstances): Causes {
  const { fault, launcherActive } = circumstances;
  if (tenant.desired === 'off') return { standing: 'off', causes: [whoStopped(tenant)] };
  if (isLasting(tenant)) return { standing: 'off', causes: [wordReason(tenant)] };
  if (fault !== undefined) return { standing: 'will_run', causes: [sameForAll(fault.summary)] };
  const unattended = launcherActive ? [] : [wordForAll(reasons.noLauncher)];
  const hindrance = tenant.state === 'STARTED' ? absenceOf(tenant) : wordReason(tenant);
  if (hindrance === undefined)
    return { standing: 'runs', causes: [...troublesOf(tenant, circumstances), ...unattended] };
  const isNamed = tenant.reason?.cause === 'no_launcher';
  return { standing: 'will_run', causes: isNamed ? [hindrance] : [hindrance, ...unattended] };
}

const unseen = 'no launcher has looked at it yet';

/** Only a person can change these. */
const lastingCodes: ReadonlySet<ReasonCode> = new Set(['not_installed', 'not_connectable', 'gone']);

function isLasting({ reason }: TenantState): boolean {
  return reason !== null && lastingCodes.has(reason.code);
}

function troublesOf({ trouble }: TenantState, { clockFault }: Circumstances): Cause[] {
  const ofParts = trouble === null ? [] : [{ full: formatCause(trouble), plain: formatPlainReason(trouble) }];
  return clockFault === undefined ? ofParts : [...ofParts, sameForAll(clockFault)];
}

function sameForAll(text: string): Cause {
  return { full: text, plain: text };
}

function wordForAll(reason: Reason): Cause {
  return sameForAll(formatReason(reason));
}

function whoStopped({ leaving, stoppedBy, state, reason }: TenantState): Cause {
  const isEnding = state === 'STARTED' || reason?.code === 'stopping';
  const by = stoppedBy ?? 'a person';
  const sentence = (who: string): string => {
    if (leaving) return `stopped by ${who} to be dropped`;
    return isEnding ? `stopping, asked by ${who}` : `stopped by ${who}`;
  };
  return { full: sentence(by), plain: sentence('a person') };
}

function wordReason(tenant: TenantState): Cause {
  const plain = tenant.state === null ? unseen : formatPlainReason(tenant.reason ?? reasons.starting);
  return { full: formatWithNextTry(tenant), plain: `${plain}${formatNextTry(tenant)}` };
}

/** The reason of a tenant that is not STARTED, with the time of the next attempt. */
export function formatWithNextTry(tenant: TenantState): string {
  if (tenant.state === null) return unseen;
  return `${formatReason(tenant.reason ?? reasons.starting)}${formatNextTry(tenant)}`;
}

function formatNextTry(tenant: TenantState): string {
  const { retryAt } = tenant;
  return retryAt === null || isLasting(tenant) ? '' : `; next try at ${retryAt.toISOString()}`;
}
