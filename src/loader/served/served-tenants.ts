/**
 * The tenants that a courier or a conductor serves, and which of them are open now.
 *
 * 1. Each second one statement on the control database lists the tenants that may have work.
 * 2. A tenant that is woken or due is opened at once; at most `maxChecks` others are opened at a time, to check them.
 * 3. A tenant that fails is retried by itself, later and later, and disturbs no other.
 */
import type { TenantRow } from '../../control/queries.ts';
import { Bell } from '../../kernel/bell.ts';
import { growingTo, loop, type Service } from '../../kernel/service.ts';
import { runningTime } from '../../kernel/time.ts';
import { ServedTenant, type ServedTenantOptions, type TenantService } from './served-tenant.ts';

export interface ListedTenant {
  readonly row: TenantRow;
  /** `unknown`: it is checked from time to time, in case a wake-up was lost. */
  readonly work: 'some' | 'none' | 'unknown';
}

export interface ServedTenantsOptions<S extends TenantService> extends ServedTenantOptions<S> {
  readonly list: () => Promise<readonly ListedTenant[]>;
  readonly onGone: (tenantId: string) => void;
  readonly onError: (error: unknown) => void;
}

const listEveryMs = 1_000;
const lookEveryMs = 200;
/** The shortest interval of lists that callers need because they name a tenant that is not listed. */
const relistEveryMs = 250;
/** Tenants that are opened at once, only to check whether a wake-up was lost. */
const maxChecks = 3;
/** Tenants that are opened at once because they have work. */
const maxOpening = 16;

export class ServedTenants<S extends TenantService> {
  readonly #options: ServedTenantsOptions<S>;
  readonly #tenants = new Map<string, ServedTenant<S>>();
  readonly #bell = new Bell(runningTime);
  #listedMs = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> = Promise.resolve();
  #isStopping = false;
  readonly service: Service;

  constructor(options: ServedTenantsOptions<S>) {
    this.#options = options;
    const { start, quiet, stop } = loop(
      'tenants',
      (signal) => this.#pass(signal),
      options.onError,
      growingTo(listEveryMs),
    );
    this.service = {
      name: 'tenants',
      start,
      quiet: () => {
        this.#isStopping = true;
        quiet();
      },
      stop: async (deadlineMs) => {
        this.#isStopping = true;
        await stop();
        const all = [...this.#tenants.values()];
        await Promise.all(all.map((tenant) => tenant.stop(deadlineMs === undefined ? {} : { deadlineMs })));
      },
    };
  }

  /** A tenant has work; undefined: any may have. A tenant that is not known yet may have got its first subscriber. */
  wake(tenantId: string | undefined): void {
    if (tenantId === undefined) for (const tenant of this.#tenants.values()) tenant.wake();
    else this.#tenants.get(tenantId)?.wake();
    if (tenantId !== undefined && !this.#tenants.has(tenantId)) return;
    this.#bell.ring();
  }

  /** The state of tenants may have changed: reads the list now. */
  relist(): void {
    this.#listedMs = Number.NEGATIVE_INFINITY;
    this.#bell.ring();
  }

  /** The running service of a tenant, which is started for it. Undefined: it cannot be served now. */
  async demand(tenantId: string): Promise<S | undefined> {
    if (this.#isStopping) return undefined;
    if (!this.#tenants.has(tenantId)) await this.#listing.catch(() => {});
    // a tenant that was just created
    if (!this.#tenants.has(tenantId) && performance.now() - this.#listedMs >= relistEveryMs) await this.#list();
    return this.#tenants.get(tenantId)?.demand(() => !this.#isStopping);
  }

  /** The services that run now. */
  running(): readonly S[] {
    return [...this.#tenants.values()].flatMap(({ running }) => (running === undefined ? [] : [running]));
  }

  /** A tenant changes; returns once its service has stopped. */
  async change(tenantId: string): Promise<void> {
    await this.#tenants.get(tenantId)?.change();
  }

  /** For tests and the log: tenants by the phase of their service. */
  phases(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { phase } of this.#tenants.values()) counts[phase] = (counts[phase] ?? 0) + 1;
    return counts;
  }

  async #pass(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#listedMs >= listEveryMs) await this.#list();
    if (signal.aborted) return;
    this.#openSome();
    for (const tenant of this.#tenants.values()) void tenant.look();
    await this.#bell.wait(lookEveryMs, signal);
  }

  #list(): Promise<void> {
    this.#listedMs = performance.now();
    this.#listing = this.#readList();
    return this.#listing;
  }

  async #readList(): Promise<void> {
    const listed = await this.#options.list();
    const ids = new Set(listed.map(({ row }) => row.id));
    for (const { row, work } of listed) {
      const known = this.#tenants.get(row.id);
      if (known === undefined) {
        this.#tenants.set(row.id, new ServedTenant(row, this.#options, { isWoken: work !== 'none' }));
      } else known.update(row, work);
    }
    for (const [id, tenant] of this.#tenants) if (!ids.has(id)) this.#drop(id, tenant);
  }

  /** Keeps the record until its service has stopped, so that it never runs twice. */
  #drop(id: string, tenant: ServedTenant<S>): void {
    void tenant.stop();
    if (tenant.phase !== 'resting') return;
    this.#tenants.delete(id);
    this.#options.onGone(id);
  }

  #openSome(): void {
    if (this.#isStopping) return;
    const opening = this.phases()['opening'] ?? 0;
    const due = [...this.#tenants.values()].filter((tenant) => tenant.isDue);
    const urgent = due.filter((tenant) => tenant.isUrgent).slice(0, Math.max(0, maxOpening - opening));
    const checks = due.filter((tenant) => !tenant.isUrgent).slice(0, Math.max(0, maxChecks - opening - urgent.length));
    for (const tenant of [...urgent, ...checks]) void tenant.open();
  }
}
