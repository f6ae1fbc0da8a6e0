/**
 * Checkpoints: named places between two steps at which a process may be made to die as if by kill -9, to prove that
 * nothing is lost or doubled whatever the moment. In production none is armed, and passing one costs a comparison.
 *
 * The table says which role's process passes them; `test/chaos/crash-points.test.ts` dies at every one of them.
 */
export const checkpoints = {
  host: [
    /** The tenant's `singleton` lock is ours, its scheduler is not started. */
    'scheduler.locked',
    /** Triggers are read and their missed instants known, nothing is written. */
    'triggers.settle',
    /** Missed instants that fire at once have fired, the marks have not moved past them. */
    'triggers.settle.fired',
    /** Catch-up is noted in a transaction that has not moved the marks. */
    'triggers.settle.noted',
    'triggers.settled',
    /** Due triggers are taken from the queue, not fired. */
    'triggers.fire',
    /** Fired, not queued for their next instant; nobody was told of the runs. */
    'triggers.fired',
    /** A piece of catch-up is read, not fired. */
    'catchup.piece',
    /** Fired, the catch-up's row does not say so. */
    'catchup.fired',
    'catchup.advanced',
    /** A piece of a backfill is read, not fired. */
    'backfills.piece',
    /** Fired and noted, nobody was told of the runs. */
    'backfills.fired',
    /** All of it is over, its row does not say so. */
    'backfills.settle',
    'tokens.release',
    /** Tokens are released, nobody was told of the runs. */
    'tokens.released',
    /** Runs are ready, nobody was told. */
    'dispatch.offer',
    'retries.queue',
    /** Retries have become runs, nobody was told. */
    'retries.queued',
    'leases.sweep',
    /** Lost runs are taken back, nobody was told. */
    'leases.swept',
    /** A change of a job is read, the trigger processor does not know. */
    'updates.read',
    /** A pass of retention begins: a scheduler that dies here has just come up. */
    'housekeeping.pass',
    /** What is no longer kept is gone. */
    'housekeeping.passed',
  ],
  api: [
    'claim.ask',
    /** Runs are leased to a worker that does not know. */
    'claim.made',
    'heartbeat.noted',
    /** Leases are renewed, the worker does not know. */
    'heartbeat.renewed',
    'report.received',
    /** Results have taken effect, nobody was told of what they made ready. */
    'report.applied',
    /** The same, and the worker does not know. */
    'report.answer',
    /** Output is kept, the worker does not know. */
    'logs.kept',
  ],
  worker: [
    /** The worker holds runs and has begun none. */
    'worker.claimed',
    /** A task has ended, nobody knows. */
    'worker.ended',
    /** A report is about to be sent. */
    'worker.report',
    /** It is acknowledged, the worker has not taken note. */
    'worker.reported',
  ],
} as const;

export type Checkpoint = (typeof checkpoints)[keyof typeof checkpoints][number];

export interface Armed {
  readonly name: Checkpoint;
  /** At which passage the process dies; 1 is the first. */
  readonly passage: number;
}

const names: ReadonlySet<string> = new Set(Object.values(checkpoints).flat());

/** Reads `name` or `name:passage`; undefined when there is no such checkpoint. */
export function parseCheckpoint(text: string): Armed | undefined {
  const [, name = '', passage = '1'] = /^([a-z.]+)(?::([1-9]\d{0,8}))?$/.exec(text) ?? [];
  return isCheckpoint(name) ? { name, passage: Number(passage) } : undefined;
}

function isCheckpoint(name: string): name is Checkpoint {
  return names.has(name);
}

let armed: Armed | undefined;
let passages = 0;

/** Called once, by whoever puts the process together. */
export function arm(checkpointToDieAt: Armed): void {
  armed = checkpointToDieAt;
}

export function checkpoint(name: Checkpoint): void {
  if (armed?.name !== name) return;
  passages += 1;
  // not exit: no handler runs, nothing is flushed, sockets close when the kernel gets to it
  if (passages === armed.passage) process.kill(process.pid, 'SIGKILL');
}
