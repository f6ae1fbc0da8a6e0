/**
 * One tenant that a courier or a conductor serves: opens the tenant, runs a service for it, and stops it again.
 *
 * - `resting`: no service. A wake-up, the due time, or a check after 25 s enters `opening`, unless a pause is running.
 * - `opening`: the loader opens the tenant, and the service starts.
 * - `running`: the service works. It leaves when it has been idle for long enough, fails, or is told to stop.
 * - `stopping`: the service ends its work, within 3 s. Then the pool is closed if nobody else in the process uses it, and it rests.
 */
import type { TenantRow } from '../../control/queries.ts';
import { type Backoff, delayMs } from '../../kernel/backoff.ts';
import { deadlineIn, type Service, stopOne, within } from '../../kernel/service.ts';
import { isUnserved, type Loader, type OpenTenant } from '../loader.ts';

/** The work for one tenant. */
export interface TenantService extends Service {
  wake(): void;
  /** The time of its next work; undefined: nothing is due. */
  nextDueAt(): number | undefined;
  isIdle(): boolean;
  /** Resolves if the tenant can be served. */
  probe(): Promise<void>;
}

export interface ServedTimes {
  /** A tenant that nobody wakes is checked after this time. */
  readonly checkEveryMs: number;
  /** A service that was woken stays this long without work; one that was only checked, `checkedMs`. */
  readonly idleMs: number;
  readonly checkedMs: number;
  readonly startMs: number;
  readonly stopMs: number;
  readonly probeEveryMs: number;
  readonly probeMs: number;
  /** After a notification that the tenant changes, so that a migration gets its lock first. */
  readonly changedMs: number;
  readonly retry: Backoff;
}

export const usualTimes: ServedTimes = {
  checkEveryMs: 25_000,
  idleMs: 10_000,
  checkedMs: 500,
  startMs: 30_000,
  stopMs: 3_000,
  probeEveryMs: 5_000,
  probeMs: 10_000,
  changedMs: 1_000,
  retry: { firstMs: 1_000, capMs: 30_000, jitter: 0.5 },
};

export interface ServedTenantOptions<S extends TenantService> {
  readonly loader: Pick<Loader, 'open' | 'close'>;
  /** Undefined: the tenant's engine has no such work. */
  readonly make: (tenant: OpenTenant) => S | undefined;
  /** Whether the tenant's connections are closed when it rests: no other part of the process uses them. */
  readonly closesPools: boolean;
  readonly times: ServedTimes;
  /** The clock of `nextDueAt`. */
  readonly now: () => number;
  readonly onFault: (row: TenantRow, error: unknown, isExpected: boolean) => void;
  /** Called every few seconds while the service runs, and before it stops. */
  readonly onLook: (row: TenantRow, service: S) => Promise<void>;
}

type Phase = 'resting' | 'opening' | 'running' | 'stopping';

export class ServedTenant<S extends TenantService> {
  readonly #options: ServedTenantOptions<S>;
  #row: TenantRow;
  #phase: Phase = 'resting';
  #service: S | undefined;
  #isWoken: boolean;
  #isChanged = false;
  #nextDueAt: number | undefined;
  #failures = 0;
  /** Times of `performance.now()`. */
  #pausedUntilMs = 0;
  #checkedMs: number;
  #busyMs = 0;
  #probedMs = 0;
  #isLooking = false;
  /** The tenant's connections are being closed by this object. */
  #isClosing = false;
  #under: Promise<void> = Promise.resolve();

  constructor(row: TenantRow, options: ServedTenantOptions<S>, { isWoken }: { readonly isWoken: boolean }) {
    this.#row = row;
    this.#isWoken = isWoken;
    this.#options = options;
    this.#checkedMs = performance.now();
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The service, while it runs. */
  get running(): S | undefined {
    return this.#phase === 'running' ? this.#service : undefined;
  }

  /** Whether it was woken or something is due; a mere check may wait for others. */
  get isUrgent(): boolean {
    return this.#isWoken || (this.#nextDueAt !== undefined && this.#nextDueAt <= this.#options.now());
  }

  /** Whether it should be opened now. */
  get isDue(): boolean {
    const nowMs = performance.now();
    if (this.#phase !== 'resting' || nowMs < this.#pausedUntilMs) return false;
    return this.isUrgent || nowMs - this.#checkedMs >= this.#options.times.checkEveryMs;
  }

  update(row: TenantRow, work: 'some' | 'none' | 'unknown'): void {
    this.#row = row;
    if (work === 'some') this.wake();
    if (work === 'none') this.#checkedMs = performance.now();
  }

  wake(): void {
    this.#isWoken = true;
    if (this.#phase === 'running') this.#service?.wake();
  }

  /**
   * The running service, which is started for it while `mayOpen`. Undefined: the tenant cannot be served now.
   */
  async demand(mayOpen: () => boolean): Promise<S | undefined> {
    if (this.#phase === 'stopping') await this.#under;
    if (this.#phase === 'opening') await this.#under;
    if (this.#phase === 'resting' && mayOpen() && performance.now() >= this.#pausedUntilMs) {
      this.#isWoken = true;
      await this.open();
    }
    return this.running;
  }

  /** Opens the tenant and starts its service. Never rejects. */
  open(): Promise<void> {
    if (this.#phase !== 'resting') return this.#under;
    this.#phase = 'opening';
    this.#isChanged = false;
    this.#under = this.#start().catch((error: unknown) => this.#fail(error));
    return this.#under;
  }

  async #start(): Promise<void> {
    const { loader, make, times } = this.#options;
    const tenant = await loader.open(this.#row);
    if (this.#isChanged) return await this.#rest();
    const isWoken = this.isUrgent;
    this.#isWoken = false;
    this.#nextDueAt = undefined;
    const service = make(tenant);
    if (service === undefined) return await this.#rest();
    this.#service = service;
    const isStarted = await within(
      times.startMs,
      service.start().then(() => true),
    );
    if (isStarted === undefined) throw new Error(`its service did not start within ${times.startMs} ms`);
    if (this.#phase !== 'opening') return;
    this.#phase = 'running';
    const nowMs = performance.now();
    this.#busyMs = isWoken ? nowMs : nowMs - times.idleMs + times.checkedMs;
    this.#probedMs = nowMs;
    service.wake();
  }

  /** Looks after the running service; called a few times a second. Never rejects. */
  async look(): Promise<void> {
    const service = this.#service;
    if (this.#phase !== 'running' || service === undefined || this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#lookAt(service);
    } catch (error) {
      if (this.#service === service) await this.#fail(error);
    } finally {
      this.#isLooking = false;
    }
  }

  async #lookAt(service: S): Promise<void> {
    const { times } = this.#options;
    const nowMs = performance.now();
    if (this.#isWoken || !service.isIdle()) this.#busyMs = nowMs;
    this.#isWoken = false;
    const isOver = nowMs - this.#busyMs >= times.idleMs;
    if (isOver || nowMs - this.#probedMs >= times.probeEveryMs) await this.#probe(service);
    if (isOver && service.isIdle() && !this.#isWoken) await this.stop();
  }

  async #probe(service: S): Promise<void> {
    this.#probedMs = performance.now();
    const { probeMs } = this.#options.times;
    const isWell = await within(
      probeMs,
      service.probe().then(() => true),
    );
    if (isWell === undefined) throw new Error(`its service did not answer within ${probeMs} ms`);
    this.#failures = 0;
    await within(probeMs, this.#options.onLook(this.#row, service)).catch(() => {});
  }

  /** Stops the service because the tenant changes. The loader closes the pool after that. */
  async change(): Promise<void> {
    if (this.#isClosing) return;
    this.#isChanged = true;
    this.#isWoken = true;
    this.#pausedUntilMs = performance.now() + this.#options.times.changedMs;
    if (this.#service !== undefined) await this.stop({ closes: false });
  }

  /** Stops the service, if there is one. May be called at any time; never rejects. */
  stop({ deadlineMs, closes = true }: { readonly deadlineMs?: number; readonly closes?: boolean } = {}): Promise<void> {
    const service = this.#service;
    // opened, but without a service yet: it rests then
    if (this.#phase === 'opening' && service === undefined) this.#isChanged = true;
    if (this.#phase === 'stopping' || service === undefined) return this.#under;
    this.#phase = 'stopping';
    const { stopMs } = this.#options.times;
    this.#under = this.#stopService(
      service,
      Math.min(deadlineMs ?? Number.POSITIVE_INFINITY, deadlineIn(stopMs)),
      closes,
    );
    return this.#under;
  }

  async #stopService(service: S, deadlineMs: number, closes: boolean): Promise<void> {
    this.#nextDueAt = dueOf(service);
    try {
      service.quiet?.();
    } catch (error) {
      this.#options.onFault(this.#row, error, false);
    }
    const late = await stopOne(service, deadlineMs);
    for (const sentence of late) this.#options.onFault(this.#row, new Error(sentence), false);
    this.#service = undefined;
    await this.#rest(closes);
  }

  async #rest(closes = true): Promise<void> {
    this.#checkedMs = performance.now();
    this.#isClosing = true;
    if (closes && this.#options.closesPools) await this.#options.loader.close(this.#row.id).catch(() => {});
    this.#isClosing = false;
    this.#phase = 'resting';
  }

  /** Stops the service and pauses before the next attempt. */
  async #fail(error: unknown): Promise<void> {
    const { times, onFault } = this.#options;
    if (this.#phase === 'stopping' || this.#phase === 'resting') return;
    onFault(this.#row, error, isUnserved(error) || this.#isChanged);
    this.#pausedUntilMs = performance.now() + delayMs(times.retry, this.#failures++);
    this.#isWoken = true;
    await (this.#service === undefined ? this.#rest() : this.stop());
  }
}

/** Undefined as well if the service fails to say. */
function dueOf(service: TenantService): number | undefined {
  try {
    return service.nextDueAt();
  } catch {
    return undefined;
  }
}
