/**
 * A conductor: a part of a process that drives executions of flows, of all tenants. It opens a tenant's engine for that, which
 * interprets and stores (`engine.flows`); the conductor decides when, commits many at once, and calls the hosted functions.
 *
 * 1. It beats in the control database each second; any number of conductors may run beside each other (`members.ts`).
 * 2. It opens tenants that have work, and closes them when they have none (`loader/served/`).
 * 3. When a tenant changes, its flows stop within 3 s, before the loader closes its connections. They go on with the new engine.
 * 4. A tenant that may run no local tasks (`MILLRACE_LOCAL_TASKS`) sees conductors that host nothing, so its calls wait.
 */
import type { EngineContext } from '../contract/context.ts';
import type { Delivered, FlowMessage } from '../contract/flow-messages.ts';
import { type FlowTenantRow, listFlowTenants } from '../control/conductor-queries.ts';
import type { Log } from '../kernel/log.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import { all, every, type Service, within } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import type { Loader, OpenTenant } from '../loader/loader.ts';
import { type ServedTimes, usualTimes } from '../loader/served/served-tenant.ts';
import { type ListedTenant, ServedTenants } from '../loader/served/served-tenants.ts';
import type { WakeHub } from '../postgres/wake.ts';
import { retryUntilServerAnswers } from '../postgres/wait-for-server.ts';
import { mayRun } from '../runtimes/local-tasks.ts';
import { type MemberView, withoutFunctions } from './choose-owner.ts';
import { Calls } from './functions/calls.ts';
import type { HostedFunctions } from './functions/hosted.ts';
import { Members } from './members.ts';
import { Memory } from './memory.ts';
import type { LocalConductor } from './port.ts';
import { ConductorTallies } from './tallies.ts';
import { TenantFlows } from './tenant-flows.ts';
import { Turns } from './turns.ts';

export interface ConductorOptions {
  readonly control: Db;
  readonly hub: Pick<WakeHub, 'onAny' | 'send'>;
  readonly loader: Loader;
  readonly functions: HostedFunctions;
  /** Calls of hosted functions at once. */
  readonly maxCalls: number;
  /** Executions in memory; default: 256 MiB. */
  readonly maxMemoryBytes?: number;
  /** The address of the API, for links that answer tasks. */
  readonly apiUrl: () => string;
  /** Whether the connections of a tenant without work are closed: nothing else in the process uses them. */
  readonly closesPools: boolean;
  readonly telemetry: Telemetry;
  readonly version: string;
  readonly now: () => number;
  readonly log: Log;
  /** Ends the wait for a control database that does not answer. */
  readonly signal?: AbortSignal;
  readonly times?: Partial<ServedTimes>;
}

export interface Conductor extends Service, LocalConductor {
  /** Tenants by the phase of their service. */
  readonly phases: () => Readonly<Record<string, number>>;
}

const beatEveryMs = 1_000;
const maxGoodbyeMs = 1_000;
/** How long a message waits for its tenant to be opened, before it is stored instead. */
const maxOpeningMs = 3_000;

export function makeConductor(options: ConductorOptions): Conductor {
  const conductor = new RunningConductor(options);
  return {
    ...conductor.service,
    get id() {
      return conductor.id;
    },
    isOther: (id) => conductor.isOther(id),
    wake: (tenantId) => conductor.wake(tenantId),
    deliver: (tenantId, messages, withinMs) => conductor.deliver(tenantId, messages, withinMs),
    phases: () => conductor.phases(),
  };
}

class RunningConductor {
  readonly #options: ConductorOptions;
  readonly #members: Members;
  readonly #tenants: ServedTenants<TenantFlows>;
  readonly #tallies: ConductorTallies;
  readonly #calls: Calls;
  readonly #memory: Memory;
  readonly #turns = new Turns();
  readonly #throttle = new LogThrottle();
  /** Tenants whose flows are open. */
  readonly #open = new Set<string>();
  /** Executions that were under way when their tenant was closed. */
  readonly #unsettled = new Map<string, ReadonlySet<string>>();
  /** Tenants that were listed before. Each is checked once, in case its work was never announced. */
  readonly #listed = new Set<string>();
  readonly #unlisten: (() => void)[] = [];
  readonly service: Service;

  constructor(options: ConductorOptions) {
    const { control, version, functions, telemetry, signal } = options;
    this.#options = options;
    this.#memory = new Memory(options.maxMemoryBytes);
    this.#tallies = new ConductorTallies(telemetry);
    this.#calls = new Calls(functions, options.maxCalls);
    this.#members = new Members({
      control,
      version,
      functions: () => functions.names,
      tenants: () => this.#driven(),
      tally: () => this.#tallies.tally(this.#executions()),
      onChanged: () => this.#onMembersChanged(),
      onRenewed: () => this.#onRenewed(),
    });
    this.#tenants = this.#makeTenants();
    const hosting = functions.service === undefined ? [] : [functions.service];
    this.service = all('conductor', [
      ...hosting,
      {
        name: 'registration',
        start: () => retryUntilServerAnswers(() => this.#members.beat(), signal),
        stop: () => this.#leave(),
      },
      every(beatEveryMs, 'beat', () => this.#members.beat(), this.#onError('beating')),
      this.#tenants.service,
      {
        name: 'wake-ups',
        start: async () => this.#listen(),
        quiet: () => this.#quiet(),
        stop: async () => this.#deafen(),
      },
    ]);
  }

  get id(): string {
    return this.#members.view.id;
  }

  isOther(id: string): boolean {
    return this.#members.view.others.has(id);
  }

  wake(tenantId: string): void {
    this.#tenants.wake(tenantId);
  }

  phases(): Readonly<Record<string, number>> {
    return this.#tenants.phases();
  }

  async deliver(
    tenantId: string,
    messages: readonly FlowMessage[],
    withinMs: number,
  ): Promise<Delivered[] | undefined> {
    const flows = await within(Math.min(withinMs, maxOpeningMs), this.#tenants.demand(tenantId));
    return flows?.deliver(messages, withinMs);
  }

  #makeTenants(): ServedTenants<TenantFlows> {
    const { loader, closesPools, log, now, times } = this.#options;
    return new ServedTenants<TenantFlows>({
      loader,
      closesPools,
      now,
      times: { ...usualTimes, ...times },
      list: () => this.#list(),
      make: (tenant) => this.#makeFlows(tenant),
      onGone: (tenantId) => {
        this.#unsettled.delete(tenantId);
        this.#listed.delete(tenantId);
      },
      onError: this.#onError('reading the tenants with flows'),
      onFault: (row, error, isExpected) => {
        const fields = { err: error, tenant: row.name };
        if (isExpected) log.debug(fields, 'flows of a tenant wait');
        else if (this.#throttle.isDue(row.id, error)) log.warn(fields, 'flows of a tenant failed, retrying');
      },
      onLook: async () => {},
    });
  }

  async #list(): Promise<ListedTenant[]> {
    const rows = await listFlowTenants(this.#options.control);
    const { bereaved } = this.#members;
    return rows.map(({ work, ...row }) => ({ row, work: bereaved.has(row.id) ? 'some' : this.#workOf(row.id, work) }));
  }

  #workOf(tenantId: string, work: FlowTenantRow['work']): FlowTenantRow['work'] {
    if (this.#listed.has(tenantId)) return work;
    this.#listed.add(tenantId);
    return work === 'none' ? 'unknown' : work;
  }

  #makeFlows({ engine, ctx }: OpenTenant): TenantFlows | undefined {
    if (engine.flows === undefined) return undefined;
    const { id } = ctx.tenant;
    const unsettled = this.#unsettled.get(id) ?? new Set();
    this.#unsettled.delete(id);
    this.#open.add(id);
    return new TenantFlows({
      engine: engine.flows,
      ctx,
      unsettled,
      view: this.#viewOf(ctx),
      calls: this.#calls,
      memory: this.#memory,
      turns: this.#turns,
      apiUrl: this.#options.apiUrl,
      hint: (owners) => this.#options.hub.send('flows', id, owners),
      announce: () => this.#members.beat(),
      onTakenOver: () => void this.#members.noteTakenOver(id).catch(this.#onError('noting a takeover')),
      onStopped: (left) => {
        this.#open.delete(id);
        if (left.size > 0) this.#unsettled.set(id, left);
      },
      onError: this.#onTenantError(ctx.tenant.name),
    });
  }

  #viewOf({ tenant, settings }: EngineContext): () => MemberView {
    const mayCall = mayRun('function', tenant.name, settings.localTasks);
    return mayCall ? () => this.#members.view : () => withoutFunctions(this.#members.view);
  }

  #onTenantError(tenant: string): (error: unknown) => void {
    return (error) => {
      if (this.#throttle.isDue(`flows of ${tenant}`, error))
        this.#options.log.warn({ err: error, tenant }, 'a step of the flows of a tenant failed, retrying');
    };
  }

  #onError(doing: string): (error: unknown) => void {
    return (error) => {
      if (this.#throttle.isDue(doing, error))
        this.#options.log.warn({ err: error, doing }, 'conductor step failed, retrying');
    };
  }

  #onMembersChanged(): void {
    for (const flows of this.#tenants.running()) flows.wakeTakeover();
    for (const tenantId of this.#members.bereaved) this.#tenants.wake(tenantId);
  }

  #onRenewed(): void {
    this.#options.log.warn({ conductor: this.id }, 'conductor was silent for too long, registered anew');
    this.#calls.dropAll('lost');
    this.#unsettled.clear();
    for (const flows of this.#tenants.running()) flows.forget();
  }

  /** Tenants in which it drives executions, or has left some. */
  #driven(): string[] {
    return [...new Set([...this.#open, ...this.#unsettled.keys()])];
  }

  #executions(): Readonly<Record<string, Readonly<Record<string, number>>>> {
    return Object.fromEntries(this.#tenants.running().map((flows) => [flows.tenantId, flows.phases()]));
  }

  #listen(): void {
    const { hub, loader, log } = this.#options;
    this.#unlisten.push(
      hub.onAny('flows', (tenantId, owners) => {
        if (owners === undefined || owners.some((owner) => owner === null || owner === this.id))
          this.#tenants.wake(tenantId);
      }),
      hub.onAny('tenant', () => this.#tenants.relist()),
      loader.beforeClose((tenantId) => this.#tenants.change(tenantId)),
    );
    log.info({ conductor: this.id }, 'conductor registered');
  }

  #quiet(): void {
    void this.#members.markLeaving().catch(() => {});
  }

  #deafen(): void {
    for (const stop of this.#unlisten.splice(0)) stop();
  }

  async #leave(): Promise<void> {
    this.#calls.dropAll('draining');
    await within(maxGoodbyeMs, this.#members.leave([...this.#unsettled.keys()])).catch(() => {});
  }
}
