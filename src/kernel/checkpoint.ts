/**
 * Checkpoints: named places between two steps at which a process may be made to die as if by kill -9, to prove that
 * nothing is lost or doubled whatever the moment. In production none is armed, and passing one costs a comparison.
 *
 * The table says which role's process passes them; `test/chaos` dies at every one of them: `crash-points` at those that runs
 * pass, `tenant-walk` at those of the launcher, and of an API that makes, changes or ends tenants (`life`). Every role passes
 * those of the home at its first start; `durable-file.test.ts` dies there.
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
  launcher: [
    /** The world is read, nothing is decided. */
    'turn.read',
    /** What was decided is written, nobody was told. */
    'turn.written',
    /** A host was started, which nobody has heard of. */
    'turn.spawned',
  ],
  life: [
    /** The tenant's row is there, its database is not. */
    'tenant.registered',
    /** Its database is there, and empty. */
    'tenant.made',
    /** The RESTART is sent, the transaction that it waits for has done nothing. */
    'tenant.told',
    /** Millrace is in it, nobody knows. */
    'tenant.installed',
    /** It is at the new version, nobody knows. */
    'tenant.upgraded',
    /** It is stopped to be dropped, and there. */
    'tenant.stopped',
    /** Its database is gone, its row is not. */
    'tenant.dropped',
  ],
  home: [
    /** The draft of a file is written, and not synced. */
    'file.drafted',
    /** The draft is synced, and has no name that anybody reads. */
    'file.synced',
    /** The file has its name, and its folder is not synced. */
    'file.linked',
    /** The file is there for good, and its draft is, too. */
    'file.kept',
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
