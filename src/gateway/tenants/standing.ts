/**
 * How a tenant stands, in words: the first thing that is shown of it, by the API, the command line and the web interface.
 *
 * - `runs`: its scheduler runs. "runs, but …" names what is wrong all the same.
 * - `will_run`: it should run and does not. It starts by itself once the reason is gone.
 * - `off`: it does not run until somebody does something. A person stopped it, or its database cannot hold a scheduler.
 *
 * Each cause is worded twice. The full wording is for keys of the tenant. The plain one is for callers without a key: it has
 * no words of a server or an engine, and no names of machines or people.
 */
import type { Life } from '../../tenants/life.ts';
import { isLauncherActive } from '../../tenants/queries.ts';
import { ownWords, plainReason, type ReasonCode, reasons } from '../../control/reasons.ts';
import type { DatabaseFault } from '../../postgres/vitals.ts';
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
  /** Of `runs`: what is wrong all the same. Otherwise why it does not run: one at least. */
  readonly causes: readonly Cause[];
}

export interface Circumstances {
  readonly launcherActive: boolean;
  /** Of the control database, as this process observes it. */
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
  if (lasting.has(tenant.code)) return { standing: 'off', causes: [reasonOf(tenant)] };
  if (fault !== undefined) return { standing: 'will_run', causes: [sameForAll(fault.summary)] };
  const unattended = launcherActive ? [] : [sameForAll(reasons.noLauncher.text)];
  const hindrance = tenant.state === 'STARTED' ? absenceOf(tenant) : reasonOf(tenant);
  if (hindrance === undefined)
    return { standing: 'runs', causes: [...troublesOf(tenant, circumstances), ...unattended] };
  const isSaid = hindrance.full === reasons.noLauncher.text;
  return { standing: 'will_run', causes: isSaid ? [hindrance] : [hindrance, ...unattended] };
}

const unseen = 'no launcher has looked at it yet';

/** Nothing but a person changes these. */
const lasting: ReadonlySet<ReasonCode | null> = new Set(['not_installed', 'not_connectable', 'gone']);

function troublesOf({ trouble }: TenantState, { clockFault }: Circumstances): Cause[] {
  const ofParts = trouble === null ? [] : [{ full: trouble, plain: ownWords(trouble) }];
  return clockFault === undefined ? ofParts : [...ofParts, sameForAll(clockFault)];
}

function sameForAll(text: string): Cause {
  return { full: text, plain: text };
}

function whoStopped({ leaving, stoppedBy, state, code }: TenantState): Cause {
  const isEnding = state === 'STARTED' || code === 'stopping';
  const by = stoppedBy ?? 'a person';
  const sentence = (who: string): string => {
    if (leaving) return `stopped by ${who} to be dropped`;
    return isEnding ? `stopping, asked by ${who}` : `stopped by ${who}`;
  };
  return { full: sentence(by), plain: sentence('a person') };
}

function reasonOf(tenant: TenantState): Cause {
  const { state, code, reason } = tenant;
  const plain = state === null ? unseen : plainReason(code ?? 'starting', reason ?? '');
  return { full: formatReason(tenant), plain: `${plain}${formatNextTry(tenant)}` };
}

/** The reason of a tenant that is not STARTED, with the time of the next try. */
export function formatReason(tenant: TenantState): string {
  if (tenant.state === null) return unseen;
  return `${tenant.reason ?? reasons.starting.text}${formatNextTry(tenant)}`;
}

function formatNextTry({ retryAt, code }: TenantState): string {
  return retryAt === null || lasting.has(code) ? '' : `; next try at ${retryAt.toISOString()}`;
}
