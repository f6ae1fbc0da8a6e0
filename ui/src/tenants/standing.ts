/**
 * Summarizes the state of a tenant for display: what its state and reason mean, whether it needs attention, and whether it will
 * soon change by itself.
 */
import type { GatewayAnswer } from '../client.ts';
import { formatInstant } from '../time/format.ts';

export type Tenant = GatewayAnswer<'GET /api/tenants/{name}'>;
export type Message = GatewayAnswer<'GET /api/tenants/{name}/messages'>['items'][number];
type Standing = Pick<Tenant, 'state' | 'reason_code' | 'desired'>;

/** `well`: it runs. `quiet`: it is not meant to. `busy`: it will in a moment. `waits`: for others. `bad`: it cannot. */
export type Tone = 'well' | 'quiet' | 'busy' | 'waits' | 'bad';

const tones: Readonly<Record<NonNullable<Tenant['reason_code']>, Tone>> = {
  stopped_by_user: 'quiet',
  starting: 'busy',
  stopping: 'busy',
  waiting_on_transaction: 'waits',
  no_slot: 'waits',
  no_engine: 'bad',
  // a database in which Millrace was never installed
  not_installed: 'quiet',
  unreachable: 'bad',
  not_connectable: 'bad',
  crashed: 'bad',
  failing: 'bad',
  gone: 'bad',
  silent: 'bad',
  database: 'bad',
};

export function toneOf({ state, reason_code }: Pick<Standing, 'state' | 'reason_code'>): Tone {
  // the launcher may have left it as STARTED, and died: there is a reason then
  if (state === 'STARTED') return reason_code === null ? 'well' : 'bad';
  return reason_code === null ? 'busy' : tones[reason_code];
}

/** The word that is shown first: whether it runs. */
export function standingWord({ standing, summary }: Pick<Tenant, 'standing' | 'summary'>): string {
  if (standing === 'runs') return summary === 'runs' ? 'runs' : 'runs, but';
  return standing === 'off' ? 'off' : 'will run';
}

/** The rest of the summary: the fault, why it does not run yet, or who stopped it. Null if there is none. */
export function standingWhy({ standing, summary }: Pick<Tenant, 'standing' | 'summary'>): string | null {
  const rest = summary.slice(standingWord({ standing, summary }).length).replace(/^:? /, '');
  return rest === '' ? null : rest.replace(/; next try at \S+Z/, '');
}

/** It should run and does not, and that will not change within a moment. */
export function needsLook(tenant: Standing): boolean {
  const tone = toneOf(tenant);
  return tenant.desired === 'on' && (tone === 'waits' || tone === 'bad');
}

/** Something is being done with it: worth looking again soon. */
export function isUnderWay({ state, reason_code }: Standing): boolean {
  return toneOf({ state, reason_code }) === 'busy' || reason_code === 'waiting_on_transaction';
}

/** While its database is like this, nothing of the tenant can be read, and no page of it has anything to show. */
const closed = new Set<Tenant['reason_code']>(['no_engine', 'not_installed', 'unreachable', 'not_connectable', 'gone']);

export function isClosed(code: Tenant['reason_code']): boolean {
  return closed.has(code);
}

/** Else there is nothing in its database to start, stop, upgrade or release. */
export function isInstalled({ reason_code }: Pick<Standing, 'reason_code'>): boolean {
  return reason_code !== 'not_installed';
}

/** When it is retried. Not shown for a database that is only checked for an installation. */
export function nextTryOf({ reason_code, retry_at }: Pick<Tenant, 'reason_code' | 'retry_at'>): string | null {
  return isInstalled({ reason_code }) ? retry_at : null;
}

/** Details of a message's outcome; null if they only repeat the outcome. */
export function detailOf({ outcome, detail }: Pick<Message, 'outcome' | 'detail'>): string | null {
  return detail === outcomeWords(outcome) ? null : detail;
}

export function outcomeWords(outcome: Message['outcome']): string {
  return outcome === null ? 'not heard yet' : outcome.replaceAll('_', ' ');
}

/** The server's sentence, with times as they are written everywhere here. */
export function sentenceWords(sentence: string): string {
  return sentence.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) =>
    formatInstant(time.replace(/\.\d+/, '')),
  );
}
