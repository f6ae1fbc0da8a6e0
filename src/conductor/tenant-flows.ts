/**
 * The flows of one tenant within this conductor: messages come in, are interpreted, committed, and what they ask for is done.
 *
 *     clients, inbox, timers, answers → mailboxes → fetching → work (interpret, put) → dispatch
 *
 * 1. Messages of one execution take effect one after the other. An execution is in one put at a time.
 * 2. Nothing leaves before the commit, and only for runs that have won: calls, timers, hints to lanes, workers and conductors.
 * 3. A run that has lost is repeated on the newest state. If it loses again and again, its message is stored.
 * 4. All state here may be lost: it is in the database, too.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EngineContext } from '../contract/context.ts';
import type { Delivered, FlowMessage } from '../contract/flow-messages.ts';
import type { FlowEngine } from '../contract/flows.ts';
import { Bell } from '../kernel/bell.ts';
import { leftUntil, loop, pause, type Service, within } from '../kernel/service.ts';
import { runningTime } from '../kernel/time.ts';
import type { TenantService } from '../loader/served/served-tenant.ts';
import { checkpoint } from './checkpoints.ts';
import { Deliveries, deliveryLimits } from './deliveries.ts';
import { Dispatch } from './dispatch.ts';
import { DueTimers, timerMessage } from './due-timers.ts';
import type { MemberView } from './choose-owner.ts';
import { Fetching } from './fetching.ts';
import type { Calls } from './functions/calls.ts';
import { Interpreting } from './interpreting.ts';
import type { Letter, Phase } from './mailbox.ts';
import { Mailboxes } from './mailboxes.ts';
import type { Memory } from './memory.ts';
import { Sweeps } from './sweeps.ts';
import type { Turns } from './turns.ts';
import { Work } from './work.ts';

export interface TenantFlowsOptions {
  readonly engine: FlowEngine;
  readonly ctx: EngineContext;
  readonly view: () => MemberView;
  readonly calls: Calls;
  readonly memory: Memory;
  readonly turns: Turns;
  readonly apiUrl: () => string;
  /** Executions that this conductor drove when it closed the tenant. */
  readonly unsettled: ReadonlySet<string>;
  /** Lets others know that this conductor drives executions of the tenant, so that they look for them if it dies. */
  readonly announce: () => Promise<void>;
  /** Wakes conductors with these ids. */
  readonly hint: (owners: readonly string[]) => void;
  /** Nothing of dead conductors is left to take over. */
  readonly onTakenOver: () => void;
  /** It has stopped. `unsettled`: executions to look after when the tenant is opened again. */
  readonly onStopped: (unsettled: ReadonlySet<string>) => void;
  readonly onError: (error: unknown) => void;
}

/** The clock of timers wakes at least this often, because the server's clock may be set. */
const maxSleepMs = 300;
/** The pause before an answer that could neither be processed nor stored is tried again. */
const answerAgainMs = 500;
/** Part of the time to stop, for storing what could not be processed. */
const storeMs = 1_000;

export class TenantFlows implements TenantService {
  readonly name = 'flows';
  readonly #options: TenantFlowsOptions;
  readonly #mailboxes: Mailboxes;
  readonly #timers = new DueTimers();
  readonly #clockBell = new Bell(runningTime);
  readonly #fetching: Fetching;
  readonly #work: Work;
  readonly #deliveries: Deliveries;
  readonly #sweeps: Sweeps;
  readonly #clock: Service;
  readonly #over = new AbortController();
  /** Answers of hosted functions that are neither committed nor stored. */
  readonly #answers = new Set<FlowMessage>();
  #fromInbox = 0;
  #isQuiet = false;

  constructor(options: TenantFlowsOptions) {
    const { engine, ctx, view, calls, turns, onError } = options;
    this.#options = options;
    this.#mailboxes = new Mailboxes(options.memory);
    const shared = { engine, ctx, view, onError };
    const mailboxes = this.#mailboxes;
    this.#fetching = new Fetching({ ...shared, mailboxes, onLoaded: () => this.#work.kick() });
    this.#work = new Work({
      ...shared,
      mailboxes,
      turns,
      interpreting: new Interpreting({ engine, ctx, hosted: () => view().functions, apiUrl: options.apiUrl }),
      dispatch: this.#makeDispatch(),
      onElsewhere: (execution) => calls.dropExecution(ctx.tenant.id, execution),
      hint: options.hint,
      onAbsent: () => this.#fetching.kick(),
    });
    this.#deliveries = this.#makeDeliveries();
    this.#sweeps = this.#makeSweeps();
    this.#clock = loop('timers', (signal) => this.#passTimers(signal), onError);
  }

  #makeDispatch(): Dispatch {
    const { engine, ctx, calls, view, hint } = this.#options;
    return new Dispatch({
      engine,
      ctx,
      calls,
      view,
      hint,
      timers: this.#timers,
      onAnswer: (message) => void this.#answer(message),
      onInbox: () => this.#sweeps.wakeInbox(),
      onTimers: (isTakeover) => (isTakeover ? this.#sweeps.wakeTimers() : this.#clockBell.ring()),
    });
  }

  #makeDeliveries(): Deliveries {
    const { engine, ctx, view, hint } = this.#options;
    return new Deliveries({
      engine,
      ctx,
      post: (letter) => this.#postFromClient(letter),
      withdraw: (letter) => this.#mailboxes.withdraw(letter) > 0,
      onStored: (owners) => {
        const { others } = view();
        hint(owners.filter((owner) => owner !== null && others.has(owner)) as string[]);
      },
    });
  }

  #makeSweeps(): Sweeps {
    const { engine, ctx, view, onTakenOver, onError } = this.#options;
    return new Sweeps({
      engine,
      ctx,
      view,
      onTakenOver,
      onError,
      timers: this.#timers,
      take: (message) => this.#takeFromInbox(message),
      taken: () => this.#fromInbox,
      takeOver: (execution, why) => this.#work.takeOver(execution, why),
      onTimers: () => this.#clockBell.ring(),
    });
  }

  get tenantId(): string {
    return this.#options.ctx.tenant.id;
  }

  async start(): Promise<void> {
    await this.#options.announce();
    for (const execution of this.#options.unsettled) this.#work.takeOver(execution, 'orphan');
    await this.#sweeps.service.start();
    await this.#clock.start();
  }

  wake(): void {
    this.#sweeps.wakeInbox();
  }

  /** Conductors have come or gone: executions of dead ones, and their messages and timers, are looked for. */
  wakeTakeover(): void {
    this.#sweeps.wakeTakeover();
  }

  /** Timers that are due later are in the database; the tenant is opened again for them. */
  nextDueAt(): undefined {
    return undefined;
  }

  isIdle(): boolean {
    const { calls, ctx } = this.#options;
    const hasCalls = calls.count(ctx.tenant.id) > 0 || this.#answers.size > 0;
    const hasWork = this.#mailboxes.letters > 0 || hasCalls || this.#timers.size > 0;
    return !hasWork && this.#work.isIdle && this.#deliveries.isIdle && this.#sweeps.isIdle && this.#fetching.isIdle;
  }

  async probe(): Promise<void> {
    await this.#sweeps.probe();
  }

  /** Executions in memory, by what they do. */
  phases(): Readonly<Partial<Record<Phase, number>>> {
    return this.#mailboxes.phases();
  }

  /** Undefined: the tenant is being closed. */
  async deliver(messages: readonly FlowMessage[], withinMs: number): Promise<Delivered[] | undefined> {
    if (this.#isQuiet) return undefined;
    return this.#deliveries.deliver(messages, withinMs);
  }

  /** Others may have taken over what this conductor has in memory. */
  forget(): void {
    this.#mailboxes.forgetAll();
    this.#timers.forgetAll();
    this.#sweeps.wakeTakeover();
    this.#kick();
  }

  quiet(): void {
    this.#isQuiet = true;
    this.#sweeps.service.quiet?.();
    this.#clock.quiet?.();
    this.#deliveries.storeAll();
  }

  async stop(deadlineMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.quiet();
    const ended = Promise.all([this.#sweeps.service.stop(), this.#clock.stop(), this.#work.drain()]);
    await within(leftUntil(deadlineMs - storeMs), ended);
    this.#over.abort();
    this.#work.abandon();
    this.#fetching.stop();
    // what has lost meanwhile
    this.#deliveries.storeAll();
    await within(leftUntil(deadlineMs), this.#deliveries.drain());
    this.#options.turns.leave(this.#work);
    this.#options.onStopped(this.#leave());
  }

  #leave(): Set<string> {
    const { calls, ctx } = this.#options;
    const unsettled = calls.detach(ctx.tenant.id);
    for (const box of this.#mailboxes.all()) if (!box.isEmpty) unsettled.add(box.id);
    // their calls are repeated
    for (const { execution } of this.#answers) unsettled.add(execution);
    this.#mailboxes.clear();
    return unsettled;
  }

  #kick(): void {
    this.#fetching.kick();
    this.#work.kick();
  }

  #post(letter: Letter, { isNew = false } = {}): void {
    this.#mailboxes.post(letter, isNew);
    this.#kick();
  }

  #postFromClient(letter: Letter): boolean {
    const { execution, point } = letter.message;
    const waiting = this.#mailboxes.get(execution)?.waiting.length ?? 0;
    const isFull = waiting >= deliveryLimits.ofExecution || this.#mailboxes.letters >= deliveryLimits.ofTenant;
    if (this.#isQuiet || isFull) return false;
    this.#post(letter, { isNew: point === 'launch' });
    return true;
  }

  #takeFromInbox(message: FlowMessage): boolean {
    if (this.#isQuiet || this.#mailboxes.holds(message.execution, message.id)) return false;
    this.#fromInbox += 1;
    const end: Letter['end'] = (ended) => {
      this.#fromInbox -= 1;
      if (this.#fromInbox === 0) this.#sweeps.noteDrained();
      if (ended.kind === 'left' && ended.owner !== null) this.#options.hint([ended.owner]);
    };
    this.#post({ message, end });
    return true;
  }

  /** The answer of a hosted function exists only here: it is offered until it is committed or stored. */
  async #answer(message: FlowMessage): Promise<void> {
    const { signal } = this.#over;
    this.#answers.add(message);
    while (!signal.aborted) {
      try {
        await this.#deliveries.send(message);
        this.#answers.delete(message);
        return;
      } catch (error) {
        this.#options.onError(error);
        await pause(answerAgainMs, signal);
      }
    }
  }

  async #passTimers(signal: AbortSignal): Promise<void> {
    const { ctx } = this.#options;
    const due = this.#timers.takeDue(ctx.time.now());
    for (const mark of due) {
      checkpoint('timer.due');
      const message = timerMessage(mark);
      const isHeld = this.#mailboxes.holds(message.execution, message.id);
      // one that is not processed here is in the table; it is read again
      if (!isHeld) this.#mailboxes.post({ message, end: () => {} }, false);
    }
    if (due.length > 0) this.#kick();
    if (this.#timers.isShort(ctx.time.now()) && this.#timers.size < shortTimers) this.#sweeps.wakeTimers();
    await nextTurn();
    const leftMs = (this.#timers.nextMs ?? Number.POSITIVE_INFINITY) - ctx.time.now();
    if (leftMs > 0) await this.#clockBell.wait(Math.min(leftMs, maxSleepMs), signal);
  }
}

/** With so few timers left in memory, the next ones are read. */
const shortTimers = 5_000;
