/**
 * The launcher's state machine for one tenant, as a pure function. `states.test.ts` quotes its specification line by line.
 * The specification leaves these cases open, which are decided here:
 *
 * - Ending takes time. A scheduler that was told to end keeps its slot until it has quit, and no other is started before.
 * - START neither sets nor clears the transaction that the next start waits for; STOP clears it.
 * - STOP of an unregistered tenant registers it as DISABLED: otherwise the next discovery would start it.
 * - A scheduler that quits before it was seen running counts as started and quit.
 * - A scheduler that hangs keeps its slot, and runs again once it continues: STARTED->ALLOCATED->STARTED.
 *
 * "Try automatic transitions" corresponds to the effects: a slot for an ENABLED tenant, a start for an ALLOCATED one.
 */

/** ENABLED: wanted, without a slot. ALLOCATED: has a slot, does not run. STARTED: runs. DISABLED: only a message changes it. */
export type LaunchState = 'ENABLED' | 'ALLOCATED' | 'STARTED' | 'DISABLED';

export interface Machine {
  readonly state: LaunchState;
  /** The transaction whose end the next start waits for. */
  readonly transaction: string | null;
  /** `ordered`: a host has the order to run it. `ending`: it was told to end, and has not ended yet. */
  readonly scheduler: 'none' | 'ordered' | 'ending';
}

export type LaunchEvent =
  /** A wanted tenant that is not registered. */
  | { readonly kind: 'discovered' }
  | { readonly kind: 'start' }
  | { readonly kind: 'stop' }
  | { readonly kind: 'restart'; readonly transaction: string | null }
  | { readonly kind: 'slot_reserved' }
  | { readonly kind: 'scheduler_ordered' }
  | { readonly kind: 'scheduler_started' }
  /** The scheduler still exists, but makes no progress. */
  | { readonly kind: 'scheduler_hangs' }
  | { readonly kind: 'scheduler_quit' };

export type Effect =
  /** Request one slot. */
  | 'reserve_slot'
  /** Release the slot, or the place in the line for one. */
  | 'release_slot'
  /** Begin or continue the start. */
  | 'start_scheduler'
  | 'terminate_scheduler';

export interface Step {
  readonly entry: Machine;
  readonly effects: readonly Effect[];
}

type Lines = Readonly<Record<LaunchState, (entry: Machine, transaction: string | null) => Step>>;

const onStart: Lines = {
  ENABLED: (entry) => enable(entry, entry.transaction),
  ALLOCATED: (entry) => stay(entry, entry.scheduler === 'none' ? ['start_scheduler'] : []),
  STARTED: (entry) => stay(entry),
  DISABLED: (entry) => enable(entry, entry.transaction),
};

const onStop: Lines = {
  ENABLED: disable,
  ALLOCATED: disable,
  STARTED: disable,
  DISABLED: (entry) => stay({ ...entry, transaction: null }),
};

const onRestart: Lines = {
  ENABLED: enable,
  ALLOCATED: restartInSlot,
  STARTED: restartInSlot,
  DISABLED: enable,
};

/** Automatic events: a slot was granted, a host has the order, a scheduler runs or has ended. */
const automatic: Readonly<
  Record<
    'slot_reserved' | 'scheduler_ordered' | 'scheduler_started' | 'scheduler_hangs' | 'scheduler_quit',
    (entry: Machine) => Step
  >
> = {
  slot_reserved(entry) {
    if (entry.scheduler !== 'none') return stay(entry);
    if (entry.state === 'ENABLED') return stay({ ...entry, state: 'ALLOCATED' }, ['start_scheduler']);
    // it was stopped before the slot was granted
    return stay(entry, entry.state === 'DISABLED' ? ['release_slot'] : []);
  },
  scheduler_ordered: (entry) =>
    stay(entry.state === 'ALLOCATED' && entry.scheduler === 'none' ? { ...entry, scheduler: 'ordered' } : entry),
  scheduler_started: (entry) =>
    stay(
      entry.state === 'ALLOCATED' && entry.scheduler !== 'ending'
        ? { state: 'STARTED', transaction: null, scheduler: 'ordered' }
        : entry,
    ),
  scheduler_hangs: (entry) => stay(entry.state === 'STARTED' ? { ...entry, state: 'ALLOCATED' } : entry),
  scheduler_quit(entry) {
    if (entry.scheduler === 'ending') return stay({ ...entry, scheduler: 'none' }, whenEnded[entry.state]);
    return entry.state === 'STARTED' || entry.state === 'ALLOCATED' ? stay(atRest, ['release_slot']) : stay(entry);
  },
};

/** Effects when an ending scheduler has quit, by the state that the entry has by then. */
const whenEnded: Readonly<Record<LaunchState, readonly Effect[]>> = {
  DISABLED: ['release_slot'],
  ENABLED: ['release_slot', 'reserve_slot'],
  ALLOCATED: ['start_scheduler'],
  STARTED: [],
};

const atRest: Machine = { state: 'DISABLED', transaction: null, scheduler: 'none' };

/** `entry` is undefined for a tenant that is not registered. */
export function step(entry: Machine | undefined, event: LaunchEvent): Step {
  const { kind } = event;
  const from = entry ?? atRest;
  if (kind === 'discovered') return entry === undefined ? enable(from, null) : stay(from);
  if (kind === 'start') return onStart[from.state](from, null);
  if (kind === 'stop') return onStop[from.state](from, null);
  if (kind === 'restart') return onRestart[from.state](from, event.transaction);
  return automatic[kind](from);
}

function stay(entry: Machine, effects: readonly Effect[] = []): Step {
  return { entry, effects };
}

/** If a scheduler is still ending, the slot is requested when it has quit. */
function enable(entry: Machine, transaction: string | null): Step {
  return stay({ ...entry, state: 'ENABLED', transaction }, entry.scheduler === 'none' ? ['reserve_slot'] : []);
}

function disable(entry: Machine): Step {
  const disabled = { ...entry, state: 'DISABLED', transaction: null } as const;
  if (entry.scheduler === 'ordered') return terminate(disabled);
  return stay(disabled, entry.scheduler === 'none' ? ['release_slot'] : []);
}

/** Restarts in the same slot. */
function restartInSlot(entry: Machine, transaction: string | null): Step {
  const allocated = { ...entry, state: 'ALLOCATED', transaction } as const;
  if (entry.scheduler === 'ordered') return terminate(allocated);
  return stay(allocated, entry.scheduler === 'none' ? ['start_scheduler'] : []);
}

function terminate(entry: Machine): Step {
  return stay({ ...entry, scheduler: 'ending' }, ['terminate_scheduler']);
}
