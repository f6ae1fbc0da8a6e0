/**
 * What one tenant's database has for this conductor, beside the messages that reach it directly:
 *
 * 1. Messages of the inbox, and executions that wait for a function this conductor hosts: when a hint came, and every two seconds in
 *    case one was lost.
 * 2. Near timers, every 30 s.
 * 3. Executions of dead conductors whose calls must be repeated: when the tenant is opened, and when conductors have come or gone.
 */
import type { EngineContext } from '../contract/context.ts';
import type { FlowMessage } from '../contract/flow-messages.ts';
import type { FlowEngine } from '../contract/flows.ts';
import { Bell } from '../kernel/bell.ts';
import { loop, type Service } from '../kernel/service.ts';
import { runningTime } from '../kernel/time.ts';
import { type DueTimers, timerLimits } from './due-timers.ts';
import { type MemberView, memberOf } from './choose-owner.ts';

const inboxEveryMs = 2_000;
const inboxPage = 1_000;
/** Messages of the inbox in memory. */
const maxTaken = 10_000;
/** After a page of at least this many messages the next one is read at once: pages are limited by bytes, too. */
const longPage = 10;
const takeoverPage = 500;
/** Hints may come often. */
const unhostedPauseMs = 50;
/** Between pages of takeovers, so that the commits of the last one are over. */
const takeoverPauseMs = 200;
const timerPage = 10_000;

/** `unhosted`: its owner is alive, and does not host a function that is to be called. */
export type TakeoverCause = 'orphan' | 'unhosted';

export interface SweepsOptions {
  readonly engine: Pick<FlowEngine, 'waiting' | 'due' | 'orphans' | 'unhosted'>;
  readonly ctx: EngineContext;
  readonly view: () => MemberView;
  readonly timers: DueTimers;
  /** Takes a message of the inbox, unless it is under way already. Returns whether it is new. */
  readonly take: (message: FlowMessage) => boolean;
  /** Letters from the inbox that are under way. */
  readonly taken: () => number;
  /** Makes this conductor the owner of an execution, and repeats its calls. */
  readonly takeOver: (execution: string, why: TakeoverCause) => void;
  /** The executions of dead conductors are taken care of. */
  readonly onTakenOver: () => void;
  readonly onTimers: () => void;
  readonly onError: (error: unknown) => void;
}

export class Sweeps {
  readonly #options: SweepsOptions;
  readonly #bell = new Bell(runningTime);
  readonly service: Service;
  #inboxMs = Number.NEGATIVE_INFINITY;
  #timersMs = Number.NEGATIVE_INFINITY;
  #isInboxWanted = true;
  #isPageLong = false;
  #isTakeoverWanted = true;
  #takeoverAtMs = Number.NEGATIVE_INFINITY;
  #unhostedMs = Number.NEGATIVE_INFINITY;
  #isAtWork = false;

  constructor(options: SweepsOptions) {
    this.#options = options;
    this.service = loop('sweeps', (signal) => this.#pass(signal), options.onError);
  }

  get isIdle(): boolean {
    return !this.#isAtWork && !this.#isInboxWanted && !this.#isTakeoverWanted;
  }

  /** Messages are in the inbox. */
  wakeInbox(): void {
    this.#isInboxWanted = true;
    this.#bell.ring();
  }

  /** All messages that were taken from the inbox have ended. */
  noteDrained(): void {
    if (this.#isPageLong) this.wakeInbox();
  }

  /** Conductors have come or gone. */
  wakeTakeover(): void {
    this.#isTakeoverWanted = true;
    this.wakeTimers();
  }

  /** Executions were taken over, or timers are not held: reads near timers now. */
  wakeTimers(): void {
    this.#timersMs = Number.NEGATIVE_INFINITY;
    this.wakeInbox();
  }

  async probe(): Promise<void> {
    const { engine, ctx, view } = this.#options;
    await engine.waiting(ctx, memberOf(view()), 1);
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const nowMs = performance.now();
    this.#isAtWork = true;
    try {
      if (this.#isTakeoverWanted && nowMs >= this.#takeoverAtMs) await this.#takeOver();
      if (nowMs - this.#timersMs >= timerLimits.refreshMs) await this.#readTimers();
      if (this.#isInboxWanted || nowMs - this.#inboxMs >= inboxEveryMs) await this.#readInbox();
    } finally {
      this.#isAtWork = false;
    }
    if (this.#isInboxWanted) return;
    await this.#bell.wait(this.#isTakeoverWanted ? takeoverPauseMs : inboxEveryMs, signal);
  }

  async #readInbox(): Promise<void> {
    const { engine, ctx, view, take, taken } = this.#options;
    this.#isInboxWanted = false;
    this.#inboxMs = performance.now();
    await this.#readUnhosted();
    const limit = Math.min(inboxPage + taken(), maxTaken);
    const found = await engine.waiting(ctx, memberOf(view()), limit);
    const fresh = found.filter((message) => take(message)).length;
    this.#isPageLong = found.length >= longPage;
    // a full page: there is more behind it
    if (fresh > 0 && found.length >= limit) this.#isInboxWanted = true;
  }

  async #readTimers(): Promise<void> {
    const { engine, ctx, view, timers, onTimers } = this.#options;
    this.#timersMs = performance.now();
    const beforeMs = ctx.time.now() + timerLimits.nearMs;
    timers.refresh(await engine.due(ctx, memberOf(view()), beforeMs, timerPage), timerPage);
    onTimers();
  }

  async #takeOver(): Promise<void> {
    const { engine, ctx, view, takeOver, onTakenOver } = this.#options;
    this.#isTakeoverWanted = false;
    this.#takeoverAtMs = performance.now() + takeoverPauseMs;
    let isComplete = false;
    try {
      const orphans = await engine.orphans(ctx, memberOf(view()), takeoverPage);
      for (const execution of orphans) takeOver(execution, 'orphan');
      isComplete = orphans.length < takeoverPage;
    } finally {
      if (!isComplete) this.#isTakeoverWanted = true;
    }
    if (isComplete) onTakenOver();
  }

  async #readUnhosted(): Promise<void> {
    const { engine, ctx, view, takeOver } = this.#options;
    const { functions } = view();
    if (functions.size === 0 || performance.now() - this.#unhostedMs < unhostedPauseMs) return;
    this.#unhostedMs = performance.now();
    for (const execution of await engine.unhosted(ctx, [...functions], takeoverPage)) takeOver(execution, 'unhosted');
  }
}
