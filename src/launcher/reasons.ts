/** Why a tenant's scheduler is not running: a code for programs, a sentence for people. Every state but STARTED has one. */

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
  startingAgain: (retryAt: Date, detail: string): Reason => ({
    code: 'starting',
    text: `starting: again at ${retryAt.toISOString()}: ${detail}`,
  }),
  stopping: { code: 'stopping', text: 'stopping' },
  waitingOn: (transaction: string): Reason => ({
    code: 'waiting_on_transaction',
    text: `waiting on transaction ${transaction}`,
  }),
  noSlot: (position: number): Reason => ({ code: 'no_slot', text: `no slot (position ${position})` }),
  noEngine: (detail: string): Reason => ({ code: 'no_engine', text: `no engine: ${detail}` }),
  notInstalled: { code: 'not_installed', text: 'not installed' },
  unreachable: (detail: string, retryAt: Date): Reason => ({
    code: 'unreachable',
    text: `unreachable until ${retryAt.toISOString()}: ${detail}`,
  }),
  isTemplate: { code: 'not_connectable', text: 'its database is a template' },
  isUnnameable: { code: 'not_connectable', text: 'its database has a name that no address can mean; rename it' },
  refusesConnections: { code: 'not_connectable', text: 'its database accepts no connections' },
  crashed: (detail: string, retryAt: Date): Reason => ({
    code: 'crashed',
    text: `crashed until ${retryAt.toISOString()}: ${detail}`,
  }),
  failing: (detail: string, retryAt: Date): Reason => ({
    code: 'failing',
    text: `failing until ${retryAt.toISOString()}: ${detail}`,
  }),
  gone: { code: 'gone', text: 'gone: its database does not exist' },
} as const;
