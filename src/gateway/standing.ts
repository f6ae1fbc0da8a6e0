/**
 * How a tenant stands, in words: the first thing that is shown of it, by the API, the command line and the web interface.
 *
 * - `runs`: its scheduler runs. "runs, but …" names what is wrong all the same.
 * - `will_run`: it should run and does not. It starts by itself once the reason is gone.
 * - `off`: it does not run until somebody does something. A person stopped it, or its database cannot hold a scheduler.
 */
import type { Life } from '../launcher/life/life.ts';
import { isLauncherActive } from '../launcher/life/queries.ts';
import type { ReasonCode } from '../launcher/reasons.ts';
import type { DatabaseFault } from '../postgres/vitals.ts';
import { absenceOf } from './absence.ts';
import type { TenantState } from './tenant-queries.ts';

export const standings = ['runs', 'will_run', 'off'] as const;

export interface Standing {
  readonly standing: (typeof standings)[number];
  readonly summary: string;
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

/** Nothing but a person changes these. */
const lasting: ReadonlySet<ReasonCode | null> = new Set(['not_installed', 'not_connectable', 'gone']);

const noLauncher = 'no launcher is active';

export function standingOf(tenant: TenantState, circumstances: Circumstances): Standing {
  if (tenant.desired === 'off') return { standing: 'off', summary: `off: ${whoStopped(tenant)}` };
  if (tenant.state !== 'STARTED') return notStarted(tenant, circumstances);
  const hindrance = hindranceOf(tenant, circumstances);
  if (hindrance !== undefined) return { standing: 'will_run', summary: `will run: ${hindrance}` };
  const { clockFault = null, launcherActive } = circumstances;
  const troubles = [tenant.trouble, clockFault, launcherActive ? null : noLauncher].filter((text) => text !== null);
  return { standing: 'runs', summary: troubles.length === 0 ? 'runs' : `runs, but ${troubles.join('; ')}` };
}

/** The recorded state is STARTED, but the scheduler does not run: states cannot be written, or its host is gone. */
function hindranceOf(tenant: TenantState, { fault, launcherActive }: Circumstances): string | undefined {
  if (fault !== undefined) return fault.detail;
  const absence = absenceOf(tenant);
  return absence && withLauncher(absence.reason, launcherActive);
}

function notStarted(tenant: TenantState, { fault, launcherActive }: Circumstances): Standing {
  const { code, retryAt } = tenant;
  const reason = formatReason(tenant);
  if (lasting.has(code)) return { standing: 'off', summary: `off: ${reason}` };
  if (fault !== undefined) return { standing: 'will_run', summary: `will run: ${fault.detail}` };
  const next = retryAt === null || code === 'starting' ? reason : `${reason}; next try at ${retryAt.toISOString()}`;
  return { standing: 'will_run', summary: `will run: ${withLauncher(next, launcherActive)}` };
}

/** The reason without the time of the next try, which is said apart. */
function formatReason({ reason, state }: TenantState): string {
  if (state === null) return 'no launcher has looked at it yet';
  return (reason ?? 'starting').replace(/ until \d{4}-[\d:.T-]+Z(?=:|$)/, '');
}

function withLauncher(reason: string, launcherActive: boolean): string {
  return launcherActive || reason.includes(noLauncher) ? reason : `${reason}; ${noLauncher}`;
}

function whoStopped({ leaving, stoppedBy, state, code }: TenantState): string {
  const isEnding = state === 'STARTED' || code === 'stopping';
  const by = stoppedBy === null ? '' : ` by ${stoppedBy}`;
  if (leaving) return `stopped${by} to be dropped`;
  return isEnding ? `stopping, asked${by || ' by a person'}` : `stopped${by || ' by a person'}`;
}
