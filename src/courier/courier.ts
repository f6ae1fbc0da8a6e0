/**
 * A courier: a process that delivers the events of all tenants. It opens a tenant's engine for that, which does the work
 * (`engine.bus.courier`); the courier decides when an engine runs, and gives it the only way out (`outbound.ts`).
 *
 * 1. It registers in the control database and sends a heartbeat every 2 s, every other time with its counters for metrics.
 * 2. It serves the tenants that are on and have subscribers (`loader/served/`), any number of couriers beside each other.
 * 3. It looks whether the processes of other couriers on its machine are gone; the errands of those return at once.
 * 4. When a tenant changes, its service stops within 3 s, before the loader closes its connections.
 */
import type { Courier, CourierContext } from '../contract/bus.ts';
import type { EngineContext } from '../contract/context.ts';
import { maxShownSubscribers } from '../contract/courier-tally.ts';
import {
  beatCourier,
  listServedTenants,
  markCouriersLost,
  type OtherCouriers,
  removeCourier,
} from '../control/courier-queries.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import { machine } from '../kernel/process/machine.ts';
import { isProcessRunning } from '../kernel/process/process-stat.ts';
import { all, every, type Service, within } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import type { Loader } from '../loader/loader.ts';
import { type ServedTimes, usualTimes } from '../loader/served/served-tenant.ts';
import { ServedTenants } from '../loader/served/served-tenants.ts';
import type { WakeHub } from '../postgres/wake.ts';
import { retryUntilServerAnswers } from '../postgres/wait-for-server.ts';
import type { CourierOutbound } from './outbound.ts';
import { CourierTallies } from './tallies.ts';

export interface CourierOptions {
  readonly control: Db;
  readonly hub: Pick<WakeHub, 'onAny'>;
  readonly loader: Loader;
  readonly outbound: CourierOutbound;
  readonly telemetry: Telemetry;
  readonly version: string;
  readonly now: () => number;
  readonly log: Log;
  /** Ends the wait for a control database that does not answer. */
  readonly signal?: AbortSignal;
  readonly times?: Partial<ServedTimes>;
}

export interface CourierProcess extends Service {
  readonly id: string;
  /** Tenants by the phase of their service. */
  readonly phases: () => Readonly<Record<string, number>>;
}

const beatEveryMs = 2_000;
/** The tally may be large, so not every beat writes it. */
const tallyEveryMs = 4_000;
const maxGoodbyeMs = 1_000;

export function makeCourier(options: CourierOptions): CourierProcess {
  const courier = new RunningCourier(options);
  return { ...courier.service, id: courier.id, phases: () => courier.phases() };
}

class RunningCourier {
  readonly id = newId();
  readonly #options: CourierOptions;
  readonly #tallies: CourierTallies;
  readonly #tenants: ServedTenants<Courier>;
  readonly #throttle = new LogThrottle();
  readonly #unlisten: (() => void)[] = [];
  #others: OtherCouriers = { alive: 0, near: [], lost: [] };
  #talliedMs = Number.NEGATIVE_INFINITY;
  readonly service: Service;

  constructor(options: CourierOptions) {
    this.#options = options;
    this.#tallies = new CourierTallies(options.telemetry);
    this.#tenants = this.#makeTenants();
    this.service = all('courier', [
      {
        name: 'registration',
        start: () => retryUntilServerAnswers(() => this.#beat(), options.signal),
        stop: () => this.#leave(),
      },
      every(beatEveryMs, 'beat', () => this.#beat(), this.#onError('beating')),
      { name: 'outbound', start: async () => {}, stop: async () => options.outbound.close() },
      this.#tenants.service,
      { name: 'wake-ups', start: async () => this.#listen(), stop: async () => this.#deafen() },
    ]);
  }

  phases(): Readonly<Record<string, number>> {
    return this.#tenants.phases();
  }

  #makeTenants(): ServedTenants<Courier> {
    const { control, loader, log, now, times } = this.#options;
    return new ServedTenants({
      loader,
      now,
      times: { ...usualTimes, ...times },
      closesPools: true,
      list: async () => (await listServedTenants(control)).map((row) => ({ row, work: 'unknown' })),
      make: ({ engine, ctx }) => engine.bus?.courier(this.#contextFor(ctx)),
      onGone: (tenantId) => this.#tallies.forgetStanding(tenantId),
      onError: this.#onError('reading the tenants with subscribers'),
      onFault: (row, error, isExpected) => {
        const fields = { err: error, tenant: row.name };
        if (isExpected) log.debug(fields, 'deliveries of a tenant wait');
        else if (this.#throttle.isDue(row.id, error)) log.warn(fields, 'deliveries of a tenant failed, retrying');
      },
      onLook: async ({ id }, service) => {
        const standing = await service.standing?.(maxShownSubscribers);
        if (standing !== undefined) this.#tallies.noteStanding(id, standing, now());
      },
    });
  }

  #contextFor(ctx: EngineContext): CourierContext {
    const { outbound } = this.#options;
    return {
      ...ctx,
      courier: { id: this.id, others: () => this.#others.alive, lost: () => this.#others.lost },
      outbound: { post: (request, signal) => outbound.post(request, signal) },
    };
  }

  #onError(doing: string): (error: unknown) => void {
    return (error) => {
      if (this.#throttle.isDue(doing, error))
        this.#options.log.warn({ err: error, doing }, 'courier step failed, retrying');
    };
  }

  async #beat(): Promise<void> {
    const { control, version } = this.#options;
    const isTallied = performance.now() - this.#talliedMs < tallyEveryMs;
    const tally = isTallied ? undefined : this.#tallies.tally;
    const known = new Set(this.#others.lost);
    this.#others = await beatCourier(control, { id: this.id, machine, pid: process.pid, version, tally });
    if (!isTallied) this.#talliedMs = performance.now();
    await this.#markGone();
    if (this.#others.lost.some((id) => !known.has(id))) this.#tenants.wake(undefined);
  }

  /** A number may belong to another process by now: then the errands return once its courier has been silent for long enough. */
  async #markGone(): Promise<void> {
    const gone = this.#others.near.filter(({ pid }) => pid !== process.pid && !isProcessRunning(pid));
    if (gone.length === 0) return;
    const ids = new Set(gone.map(({ id }) => id));
    await markCouriersLost(this.#options.control, [...ids]);
    const near = this.#others.near.filter(({ id }) => !ids.has(id));
    this.#others = { ...this.#others, near, lost: [...this.#others.lost, ...ids] };
  }

  #listen(): void {
    const { hub, loader } = this.#options;
    this.#unlisten.push(
      hub.onAny('bus', (tenantId) => this.#tenants.wake(tenantId)),
      hub.onAny('tenant', () => this.#tenants.relist()),
    );
    loader.beforeClose((tenantId) => this.#tenants.change(tenantId));
    this.#options.log.info({ courier: this.id }, 'courier registered');
  }

  #deafen(): void {
    for (const stop of this.#unlisten.splice(0)) stop();
  }

  async #leave(): Promise<void> {
    await within(maxGoodbyeMs, removeCourier(this.#options.control, this.id)).catch(() => {});
  }
}
