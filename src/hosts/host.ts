/**
 * A host: a process that runs the schedulers of many tenants, all of one engine version. It registers itself in the control
 * database, says every second that it lives, and carries out exactly the orders that name it. It needs no launcher to go on,
 * and decides nothing: what it met it says in `scheduler`, and the launcher reads it.
 *
 * When its row is gone it was written off, and others may have its tenants: it lets go of everything and begins anew under
 * another id. Without its control database for a minute it ends.
 */
import type { Pool } from 'pg';
import { everyone } from '../contract/channels.ts';
import type { EngineContext, SchedulerStatus } from '../contract/context.ts';
import { isStatementRejection } from '../errors.ts';
import { Bell } from '../kernel/bell.ts';
import { observeHeap } from '../kernel/process/heap-observer.ts';
import { newId } from '../kernel/id.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import type { Log } from '../kernel/log.ts';
import { machine } from '../kernel/process/machine.ts';
import { all, every, growingTo, loop, type Service, within } from '../kernel/service.ts';
import type { Db } from '../kernel/sql.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import { runningTime } from '../kernel/time.ts';
import type { Address } from '../postgres/address.ts';
import { outlast } from '../postgres/wait-for-server.ts';
import type { ConnectionBudget } from '../postgres/pool/connection-budget.ts';
import type { WakeHub } from '../postgres/wake.ts';
import { Attempts } from './attempts.ts';
import type { TenantRow } from '../control/queries.ts';
import type { EngineSource } from '../loader/engines/engines.ts';
import type { PartHooks } from './failing-parts.ts';
import {
  beatHost,
  beatSchedulers,
  connectionsOf,
  giveUpHost,
  type HostAnswer,
  isWrittenOff,
  leaveSoon,
  type Order,
  ordersFor,
  registerHost,
  removeHost,
  type SchedulerBeat,
  writeWords,
} from './host-queries.ts';
import { BeatPace } from './beat-pace.ts';
import { Housekeeping } from './housekeeping.ts';
import { hintChanged } from '../control/messages.ts';
import { Ending } from './singleton.ts';
import { Tallies } from './tallies.ts';
import { runScheduler, type SchedulerLimits, usualLimits } from './tenant-scheduler.ts';
import { Words } from './host-reports.ts';

export interface HostOptions {
  readonly control: Db;
  readonly hub: WakeHub;
  /** The engine whose schedulers it runs. */
  readonly version: string;
  readonly engines: EngineSource;
  readonly addressOf: (row: TenantRow) => Address;
  /** Its database is on another server than the control database. */
  readonly isElsewhere: (row: TenantRow) => boolean;
  readonly contextFor: (row: TenantRow, pool: Pool) => EngineContext;
  readonly statuses: Map<string, SchedulerStatus>;
  readonly telemetry: Telemetry;
  readonly allowPooler: boolean;
  readonly poolSize: number;
  /** What all its schedulers may have together beside the one connection that each of them keeps; default: any number. */
  readonly budget?: ConnectionBudget;
  /** Resident memory, in bytes, that it may use for a while but not for longer. */
  readonly memoryLimit: number;
  /** Bytes that its heap may hold after garbage collection. */
  readonly heapLimit: number;
  /** Told to leave, it lets go of all tenants but stays: somebody has started it who knows why. */
  readonly stays: boolean;
  readonly log: Log;
  /** Who is to end does not wait for a control database that is away. */
  readonly signal?: AbortSignal;
  readonly limits?: SchedulerLimits;
  readonly patience?: Partial<HostPatience>;
  /** Called when the number of tenants whose schedulers run here, or are about to, may have changed. */
  readonly onTenants?: (count: number) => void;
}

interface HostPatience {
  /** How long it lives without its control database. */
  readonly aloneMs: number;
  /** How long that may take to answer. */
  readonly answerMs: number;
  readonly overMemoryMs: number;
}

export interface Host extends Service {
  /** Its id, which is another one after it was written off. */
  readonly id: () => string;
  /** Resolves when it is to end though nobody stopped it: stop it then. */
  readonly ended: Promise<HostEnd>;
}

interface HostEnd {
  /** It was told to leave: all is well. */
  readonly asked: boolean;
  readonly reason: string;
}

const usualPatience: HostPatience = { aloneMs: 60_000, answerMs: 5_000, overMemoryMs: 10_000 };
const beatEveryMs = 1_000;
const longestWordMs = 1_000;
const nothing: SchedulerStatus = { queuedTriggers: 0, nextTriggerId: null, nextTriggers: [], ready: false };

export function makeHost(options: HostOptions): Host {
  const host = new RunningHost(options);
  return { ...host.service, id: () => host.id, ended: host.ended };
}

class RunningHost {
  readonly #options: HostOptions;
  readonly #orders = new Bell(runningTime);
  readonly #attempts: Attempts;
  readonly #words: Words;
  readonly #tallies: Tallies;
  readonly #pace = new BeatPace();
  readonly #throttle = new LogThrottle();
  readonly #housekeeping = new Housekeeping();
  readonly #patience: HostPatience;
  #unsubscribe = (): void => {};
  #end: (how: HostEnd) => void = () => {};
  #heardAt = performance.now();
  #fitAt = performance.now();
  /** It is not to be believed any more: whoever finds its row takes it for lost. */
  #lost = false;
  #stopping = false;
  #hasLauncher = true;
  /** Told to leave, and to stay. */
  #lettingGo: Promise<void> | undefined;
  id = newId();
  readonly ended: Promise<HostEnd>;
  readonly service: Service;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#patience = { ...usualPatience, ...options.patience };
    this.#tallies = new Tallies(options.telemetry);
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.#words = new Words({
      bell: new Bell(runningTime),
      write: (words) => this.#write(words),
      onError: this.#onError('telling the launcher'),
    });
    this.#attempts = new Attempts({
      run: (order, hooks, signal) => this.#run(order, hooks, signal),
      say: (word) => this.#words.say(word),
      onEnd: (order, ending) => this.#onEnd(order, ending),
    });
    this.service = all('host', [
      // it beats to its end: silent, it would be taken for lost while its schedulers take their time to stop
      { name: 'registration', start: () => outlast(() => this.#register(), options.signal), stop: () => this.#leave() },
      every(beatEveryMs, 'beat', () => this.#beat(), this.#onError('beating')),
      // by themselves: a row that somebody has locked must not make the host look lost
      every(beatEveryMs, 'beats of schedulers', () => this.#beatSchedulers(), this.#onError('telling of schedulers')),
      this.#words.service,
      this.#heapWatch(),
      { name: 'schedulers', start: async () => {}, stop: () => this.#attempts.stopAll() },
      loop('orders', (signal) => this.#follow(signal), this.#onError('reading its orders'), growingTo(beatEveryMs)),
      { name: 'leave-taking', start: async () => {}, stop: () => this.#takeLeave() },
    ]);
  }

  #onError(doing: string): (error: unknown) => void {
    return (error) => {
      if (this.#throttle.isDue(doing, error))
        this.#options.log.warn({ err: error, doing }, 'the host could not do its part; trying again');
    };
  }

  async #register(): Promise<void> {
    const { control, hub, version: engine, log } = this.#options;
    const memory = process.memoryUsage.rss();
    const onDemand = !this.#options.stays;
    await registerHost(control, { id: this.id, machine, pid: process.pid, engine, memory, onDemand });
    this.#heardAt = performance.now();
    this.#unsubscribe();
    this.#unsubscribe = hub.on('orders', this.id, () => this.#orders.ring());
    log.info({ host: this.id, engine }, 'the host is there');
    // whoever waits for a host need not wait until it looks again
    hub.send('host_reports', everyone);
  }

  /** Before all else, so that nothing that it lets go of is given to it again. */
  async #takeLeave(): Promise<void> {
    const { control, hub } = this.#options;
    this.#stopping = true;
    if (this.#lost) return;
    await within(longestWordMs, leaveSoon(control, this.id)).catch(() => {});
    hub.send('host_reports', everyone);
  }

  /** The last words, and then its row; without a database nobody waits long to say so. */
  async #leave(): Promise<void> {
    const { control, hub } = this.#options;
    this.#unsubscribe();
    await this.#lettingGo;
    if (this.#lost) return;
    const said = this.#words.flush().then(() => removeHost(control, this.id));
    await within(longestWordMs, said).catch(() => {});
    hub.send('host_reports', everyone);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const id = this.id;
    const orders = await ordersFor(this.#options.control, id);
    if (signal.aborted || id !== this.id) return;
    this.#attempts.follow(this.#stopping || this.#lettingGo !== undefined ? { ...orders, orders: [] } : orders);
    this.#options.onTenants?.(this.#attempts.running.length);
    await this.#orders.wait(beatEveryMs, signal);
  }

  async #beat(): Promise<void> {
    if (this.#lost) return;
    const memory = process.memoryUsage.rss();
    if (memory <= this.#options.memoryLimit) this.#fitAt = performance.now();
    if (performance.now() - this.#fitAt > this.#patience.overMemoryMs)
      return this.#overflow(`it uses ${mib(memory)} MiB of memory, more than ${mib(this.#options.memoryLimit)}`);
    const { id } = this;
    try {
      const row = await this.#sayAlive(id, memory);
      this.#heardAt = performance.now();
      this.#hasLauncher = row?.launched ?? true;
      // it has begun anew meanwhile, or is about to: that concerns whom it was
      if (id !== this.id || this.#lettingGo !== undefined) return;
      if (row === undefined) return await this.#writtenOff();
      if (row.leaving) this.#dismissed();
    } catch (error) {
      const aloneMs = performance.now() - this.#heardAt;
      if (aloneMs > this.#patience.aloneMs)
        this.#end({ asked: false, reason: `no control database for ${Math.round(aloneMs / 1_000)} s` });
      throw error;
    }
  }

  /** A network that is gone says nothing, not even no. */
  async #sayAlive(id: string, memory: number): Promise<HostAnswer | undefined> {
    const { unsaid } = this.#words;
    const beat = beatHost(this.#options.control, { id, memory, unsaid }).then((row) => ({ row }));
    const answer = await within(this.#patience.answerMs, beat);
    if (answer === undefined) throw new Error('the control database does not answer');
    return answer.row;
  }

  async #beatSchedulers(): Promise<void> {
    if (this.#lost) return;
    const { control, statuses } = this.#options;
    const beats = this.#attempts.running.map(
      ({ tenantId, id }): SchedulerBeat => ({
        tenantId,
        id,
        ...(statuses.get(tenantId) ?? nothing),
        tally: this.#tallies.of(tenantId),
      }),
    );
    const news = this.#pace.due(beats, performance.now());
    if (news.length === 0) return;
    const write = (some: readonly SchedulerBeat[]): Promise<void> => beatSchedulers(control, this.id, some);
    const rejected = await isolateRejected(news, write, { isRejection: isStatementRejection });
    for (const error of rejected.values()) this.#onError('telling of a scheduler')(error);
    this.#pace.told(news, performance.now());
  }

  /** Its row is gone: its tenants are others' by now, and what it has to say of them concerns nobody. */
  async #writtenOff(): Promise<void> {
    if (this.#stopping) return;
    this.#options.log.warn({ host: this.id }, 'this host was written off; it lets go of all tenants and begins anew');
    this.#words.forget();
    await this.#attempts.stopAll();
    this.#words.forget();
    await this.#beginAnew();
  }

  #dismissed(): void {
    if (this.#stopping) return;
    if (!this.#options.stays) return this.#end({ asked: true, reason: 'it was told to leave' });
    // meanwhile it goes on to beat
    this.#lettingGo ??= this.#letGo()
      .catch(this.#onError('letting go of its tenants'))
      .finally(() => (this.#lettingGo = undefined));
  }

  async #letGo(): Promise<void> {
    await this.#attempts.stopAll();
    await this.#words.flush();
    if (this.#stopping) return;
    await removeHost(this.#options.control, this.id);
    await this.#beginAnew();
  }

  async #beginAnew(): Promise<void> {
    if (this.#stopping) return;
    this.#attempts.forget();
    this.id = newId();
    await this.#register();
    this.#orders.ring();
  }

  /** Near the limit at which Node aborts it, the process would be busy with garbage collection, and its tenants late. */
  #heapWatch(): Service {
    const { heapLimit } = this.#options;
    let end = (): void => {};
    return {
      name: 'watch of the heap',
      start: async () => {
        end = observeHeap((used) => {
          if (used > heapLimit)
            void this.#overflow(`it ran out of memory: its heap holds ${mib(used)} MiB, more than ${mib(heapLimit)}`);
        });
      },
      stop: async () => end(),
    };
  }

  /** A leak is the fault of some tenant, and nobody knows of which: the launcher decides who is suspected. */
  async #overflow(reason: string): Promise<void> {
    const { log, control, hub } = this.#options;
    if (this.#lost) return;
    this.#lost = true;
    log.error({ host: this.id, tenants: this.#attempts.running.length }, `the host ends: ${reason}`);
    // sent together: in a process that runs out of memory, each answer may take a second to be noticed
    const said = Promise.all([this.#sayWhy(`its host ended: ${reason}`), giveUpHost(control, this.id)]);
    await within(longestWordMs, said).catch(() => {});
    hub.send('host_reports', everyone);
    this.#end({ asked: false, reason });
  }

  /** Of all schedulers that run: they do, but not for long. */
  async #sayWhy(reason: string): Promise<void> {
    const words = this.#attempts.running.map(({ tenantId, id, orderNo }) => {
      const { version: engine } = this.#options;
      return { tenantId, id, orderNo, engine, phase: 'running', code: 'crashed', reason } as const;
    });
    if (words.length > 0) await writeWords(this.#options.control, this.id, words);
  }

  async #write(words: Parameters<typeof writeWords>[2]): Promise<void> {
    if (this.#lost) return;
    await writeWords(this.#options.control, this.id, words);
    this.#options.hub.send('host_reports', everyone);
  }

  #run(order: Order, hooks: PartHooks, signal: AbortSignal): Promise<Ending> {
    const { row, engine } = order;
    const { version, engines, addressOf, contextFor, allowPooler, poolSize, budget, limits } = this.#options;
    if (engine !== version)
      return Promise.resolve(new Ending('starting', `its host is of engine ${version}, not ${engine}`));
    return runScheduler(
      {
        ...hooks,
        version,
        engines,
        allowPooler,
        poolSize,
        budget,
        address: addressOf(row),
        // by the version the server's log tells engines apart
        application: `${connectionsOf(this.id)} ${version} ${row.name}`,
        isUnwatched: () => !this.#hasLauncher || this.#options.isElsewhere(row),
        onWanted: () => hintChanged(this.#options.hub, row.id),
        isWrittenOff: (application) => this.#wasLost(order, application),
        contextFor: (pool, over) => ({ ...contextFor(row, pool), housekeeping: this.#housekeeping.of(over) }),
        limits: limits ?? usualLimits,
        hasFailed: order.hasFailed ?? false,
      },
      signal,
    );
  }

  /** Only a host that had it last: whatever else holds the tenant may be of another installation, and well. */
  async #wasLost({ lastHosts = [] }: Order, application: string): Promise<boolean> {
    const holder = lastHosts.find((id) => application.startsWith(`${connectionsOf(id)} `));
    return holder !== undefined && (await isWrittenOff(this.#options.control, holder));
  }

  #onEnd({ row, orderNo }: Order, { code, message }: Ending): void {
    const { log, statuses } = this.#options;
    statuses.delete(row.id);
    this.#tallies.forget(row.id);
    const fields = { tenant: row.name, order: orderNo, code, reason: message };
    if (code === 'stopping' || code === 'starting') log.debug(fields, 'a scheduler has ended');
    else log.warn(fields, 'a scheduler has ended');
    this.#orders.ring();
  }
}

function mib(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
