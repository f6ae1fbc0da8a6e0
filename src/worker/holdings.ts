/**
 * The runs that a worker holds: from the claim until the report is acknowledged, or the lease is lost. Heartbeats list them, and
 * running runs are killed through them.
 */
import type { ClaimedRun, HeldRun } from '../contract/wire.ts';
import type { KillReason } from '../runtimes/contract.ts';

export class Hold {
  readonly run: ClaimedRun;
  #control: AbortController | undefined;
  #killed: KillReason | undefined;
  #settled = false;
  #outlives = false;

  constructor(run: ClaimedRun) {
    this.run = run;
  }

  /** Aborts when the run is killed. Created on first use, because most runs of a busy worker never need it. */
  get signal(): AbortSignal {
    this.#control ??= new AbortController();
    if (this.#killed !== undefined) this.#control.abort(this.#killed);
    return this.#control.signal;
  }

  /** Why it was killed; the first reason stays. */
  get killed(): KillReason | undefined {
    return this.#killed;
  }

  /** The task continues when its worker stops. */
  get outlives(): boolean {
    return this.#outlives;
  }

  markOutliving(): void {
    this.#outlives = true;
  }

  /** The result of the run is known: from now on it can only be lost. */
  settle(): void {
    this.#settled = true;
  }

  kill(reason: KillReason): void {
    if (this.#settled && reason !== 'lost') return;
    this.#killed ??= reason;
    this.#control?.abort(this.#killed);
  }
}

export class Holdings {
  readonly #holds = new Map<string, Hold>();

  /** A run that is still held under an older lease has been lost, although no signal said so yet. */
  add(run: ClaimedRun): Hold {
    const hold = new Hold(run);
    const key = keyOf(run);
    this.#holds.get(key)?.kill('lost');
    this.#holds.set(key, hold);
    return hold;
  }

  find(held: HeldRun): Hold | undefined {
    const hold = this.#holds.get(keyOf(held));
    return hold?.run.lease === held.lease ? hold : undefined;
  }

  remove(held: HeldRun): void {
    if (this.find(held)) this.#holds.delete(keyOf(held));
  }

  killAll(reason: KillReason): void {
    for (const hold of this.#holds.values()) hold.kill(reason);
  }

  /** Gives up the tasks that continue without this worker. */
  releaseOutliving(): void {
    for (const hold of this.#holds.values()) if (hold.outlives) hold.kill('draining');
  }

  list(): HeldRun[] {
    return Array.from(this.#holds.values(), ({ run: { tenant, run, lease } }) => ({ tenant, run, lease }));
  }
}

/** Two tenants may be copies of one database, and then have the same run ids. */
function keyOf({ tenant, run }: HeldRun): string {
  return `${run}/${tenant}`;
}
