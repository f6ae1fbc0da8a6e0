/**
 * What a worker must hear soon: runs to kill, caches to drop. Both come with its next answer; a kill ends its poll at once.
 * A cache does not: it is used for runs, and those come with the same answer.
 */
import type { HeldRun, Invalidation, Seen, Signals } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';
import { groupBy } from '../../kernel/group-by.ts';
import type { Log } from '../../kernel/log.ts';
import { within } from '../../kernel/service.ts';
import type { Loader } from '../../loader/loader.ts';
import { InvalidationLog } from './invalidation-log.ts';

/** A look that has no answer for so long will have none: another may begin. */
const hopelessMs = 30_000;

type Told = Omit<Signals, 'lost'>;

export class SignalDesk {
  readonly #loader: Loader;
  readonly #log: Log;
  readonly #cancels = new Map<string, HeldRun[]>();
  /** A worker may have several: one for each kind of room it has. */
  readonly #polls = new Map<string, Set<AbortController>>();
  /** Tenants that are to be looked at, and looks that are under way. */
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
   * Some run of this tenant is to be killed: looks up which, and tells the workers that wait here. It is said of every run
   * of a job that is deleted: whatever is said during a look shares one more.
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
      this.#log.warn(
        { err: error, tenant: tenantId },
        'runs to be killed cannot be read; their workers learn it from a heartbeat',
      );
    }
  }

  #cancel(worker: string, some: readonly { readonly run: HeldRun }[]): void {
    const [poll] = this.#polls.get(worker) ?? [];
    if (poll === undefined) return;
    this.#cancels.set(worker, [...(this.#cancels.get(worker) ?? []), ...some.map(({ run }) => run)]);
    poll.abort();
  }

  /** Ends all polls at once, and takes no more: workers ask another gateway, or this one after its restart. */
  quiet(): void {
    this.#isQuiet = true;
    for (const polls of this.#polls.values()) for (const poll of polls) poll.abort();
  }

  /** Aborts when there is a run for this worker to kill; of several polls one is enough to tell it. */
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

  /** What to tell this worker now. */
  take(worker: string, seen: Seen): Told {
    const cancel = this.#cancels.get(worker) ?? [];
    this.#cancels.delete(worker);
    return { cancel, ...this.#invalidations.after(seen) };
  }
}
