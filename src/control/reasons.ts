/**
 * Why a tenant's scheduler is not running: a code for programs, a text for people. Every state but STARTED has a reason.
 *
 * The text holds no times of tries: those are data (`launch.retry_at`), and `gateway/tenants/standing.ts` shows them.
 */

/** How every sentence about a schema begins that its engine was not written for. */
export const schemaFaultStart = 'its schema does not match engine';

export const reasonCodes = [
  'stopped_by_user',
  'starting',
  'stopping',
  'waiting_on_transaction',
  'no_slot',
  'no_engine',
  'not_installed',
  'unreachable',
  'not_connectable',
  'crashed',
  'failing',
  'gone',
] as const;

export type ReasonCode = (typeof reasonCodes)[number];

export interface Reason {
  readonly code: ReasonCode;
  readonly text: string;
}

export const reasons = {
  stoppedByUser: { code: 'stopped_by_user', text: 'stopped by user' },
  starting: { code: 'starting', text: 'starting' },
  noLauncher: { code: 'starting', text: 'no launcher is active' },
  startingAfter: (detail: string): Reason => ({ code: 'starting', text: `starting: ${detail}` }),
  stopping: { code: 'stopping', text: 'stopping' },
  waitingOn: (transaction: string): Reason => ({
    code: 'waiting_on_transaction',
    text: `waiting on transaction ${transaction}`,
  }),
  noSlot: (position: number): Reason => ({ code: 'no_slot', text: `no slot (position ${position})` }),
  noEngine: (detail: string): Reason => ({
    code: 'no_engine',
    text: detail.startsWith(schemaFaultStart) ? detail : `no engine: ${detail}`,
  }),
  notInstalled: { code: 'not_installed', text: 'not installed' },
  unreachable: (detail: string): Reason => ({ code: 'unreachable', text: `unreachable: ${detail}` }),
  isTemplate: { code: 'not_connectable', text: 'its database is a template' },
  isUnnameable: { code: 'not_connectable', text: 'its database has a name that no address can mean; rename it' },
  refusesConnections: { code: 'not_connectable', text: 'its database accepts no connections' },
  crashed: (detail: string): Reason => ({ code: 'crashed', text: `crashed: ${detail}` }),
  failing: (detail: string): Reason => ({ code: 'failing', text: `failing: ${detail}` }),
  gone: { code: 'gone', text: 'gone: its database does not exist' },
} as const;

/** The text without the word that its code puts before the cause. */
export function causeOf(text: string): string {
  return text.replace(/^(?:starting|no engine|unreachable|crashed|failing): /, '');
}

const plainReasons: Readonly<Record<Exclude<ReasonCode, 'failing'>, string>> = {
  stopped_by_user: 'stopped by a person',
  starting: 'it is starting',
  stopping: 'it is ending',
  waiting_on_transaction: 'it waits for the end of a transaction on its database',
  no_slot: 'it waits for a slot',
  no_engine: 'the engine of its version is missing, cannot be loaded or does not fit its schema',
  not_installed: 'Millrace is not installed in its database',
  unreachable: 'its database cannot be reached or used',
  not_connectable: 'its database accepts no connections',
  crashed: 'its scheduler or the process that runs it has ended',
  gone: 'its database does not exist',
};

/** How sentences about a database that lets the scheduler read, and not write, begin. */
export const readOnlyStart = 'its database is read-only';
export const missingRightStart = 'its role lacks a right';

/** The cause without words of a server or an engine, for callers without a key. */
export function plainReason(code: ReasonCode, text: string): string {
  const cause = causeOf(text);
  if (code === 'failing') return ownWords(cause);
  return [readOnlyStart, missingRightStart].find((start) => cause.startsWith(start)) ?? plainReasons[code];
}

/** "firing triggers fails since …: error": only the error has words of the server. */
export function ownWords(fault: string): string {
  return fault.split(': ', 1)[0] ?? fault;
}
