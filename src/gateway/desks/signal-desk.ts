/**
 * Signals that a worker must receive soon: runs to kill, and invalidations. Both are sent with its next answer, and a kill ends
 * its poll at once. An invalidation does not: cached objects are needed for runs, which come with the same answer.
 */
import type { HeldRun, Invalidation, Seen, Signals } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';
import { groupBy } from '../../kernel/group-by.ts';
import type { Log } from '../../kernel/log.ts';
import { within } from '../../kernel/service.ts';
import type { Loader } from '../../loader/loader.ts';
import { InvalidationLog } from './invalidation-log.ts';

/** A query without an answer after this time is abandoned: another may begin. */
const hopelessMs = 30_000;

type Signalled = Omit<Signals, 'lost'>;

export class SignalDesk {
  readonly #loader: Loader;
  readonly #log: Log;
  readonly #cancels = new Map<string, HeldRun[]>();
  /** A worker may have several polls, one for each kind of place. */
  readonly #polls = new Map<string, Set<AbortController>>();
  /** Tenants to query, and queries under way. */
  readonly #wanted = new Set<string>();
  readonly #looking = new Map<string, Promise<void>>();
  #isQuiet = false;
  readonly #invalidations = new InvalidationLog();

  constructor(loader: Loader, log: Log) {
    this.#loader = loader;
    this.#log = log;
  }

  /** Undefined: some invalidations may have been missed. */
  invalidate(invalidation: Invalidation | undefined): void {
    this.#invalidations.add(invalidation);
  }

  /**
   * Some run of this tenant must be killed: finds which, and signals the workers that poll here. It is called for every run of a
   * deleted job; calls during a query share one more query.
   */
  lookAt(tenantId: string): Promise<void> {
    this.#wanted.add(tenantId);
    const looking = this.#looking.get(tenantId) ?? this.#lookWhileWanted(tenantId);
    this.#looking.set(tenantId, looking);
    return looking;
  }

  async #lookWhileWanted(tenantId: string): Promise<void> {
    while (this.#wanted.delete(tenantId)) await within(hopelessMs, this.#look(tenantId));
    this.#looking.delete(tenantId);
  }

  async #look(tenantId: string): Promise<void> {
    try {
      const found = await this.#loader.use(tenantId, ({ engine, ctx }) => engine.runs.cancellations(ctx));
      for (const [worker, some] of groupBy(found, (each) => each.worker)) this.#cancel(worker, some);
    } catch (error) {
      this.#log.warn({ err: error, tenant: tenantId }, 'reading runs to kill failed; heartbeats will carry the kill');
    }
  }

  #cancel(worker: string, some: readonly { readonly run: HeldRun }[]): void {
    const [poll] = this.#polls.get(worker) ?? [];
    if (poll === undefined) return;
    this.#cancels.set(worker, [...(this.#cancels.get(worker) ?? []), ...some.map(({ run }) => run)]);
    poll.abort();
  }

  /** Ends all polls at once, and accepts no more. Workers poll another gateway, or this one after its restart. */
  quiet(): void {
    this.#isQuiet = true;
    for (const polls of this.#polls.values()) for (const poll of polls) poll.abort();
  }

  /** Aborts when there is a run for this worker to kill. One of several polls is enough. */
  poll(worker: string): AbortController {
    if (this.#isQuiet) throw new MillraceError('stopping', 'this gateway is stopping and takes no more polls');
    const control = new AbortController();
    this.#polls.set(worker, (this.#polls.get(worker) ?? new Set()).add(control));
    if (this.#cancels.has(worker)) control.abort();
    return control;
  }

  endPoll(worker: string, control: AbortController): void {
    const polls = this.#polls.get(worker);
    polls?.delete(control);
    if (polls?.size === 0) this.#polls.delete(worker);
  }

  /** Takes the signals for this worker. */
  take(worker: string, seen: Seen): Signalled {
    const cancel = this.#cancels.get(worker) ?? [];
    this.#cancels.delete(worker);
    return { cancel, ...this.#invalidations.after(seen) };
  }
}
