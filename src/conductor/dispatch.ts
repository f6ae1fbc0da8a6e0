/**
 * Does what committed runs ask for: calls of hosted functions, timers, and hints to lanes, workers and other conductors. A crash
 * before or in the middle of it loses nothing: calls are part of the execution's state, all others find their work in tables.
 */
import type { EngineContext } from '../contract/context.ts';
import type { FlowMessage } from '../contract/flow-messages.ts';
import type { Execution, FlowEngine, FlowRun, HostedCall, PutResult } from '../contract/flows.ts';
import { checkpoint } from './checkpoints.ts';
import type { DueTimers } from './due-timers.ts';
import { hostsOf, type MemberView } from './choose-owner.ts';
import type { Calls } from './functions/calls.ts';
import type { CallOutcome } from './functions/hosted.ts';
import { functionsCalled } from './telemetry.ts';

export interface DispatchOptions {
  readonly engine: Pick<FlowEngine, 'unfinished'>;
  readonly ctx: EngineContext;
  readonly calls: Calls;
  readonly timers: DueTimers;
  readonly view: () => MemberView;
  readonly onAnswer: (message: FlowMessage) => void;
  /** Messages are in the inbox for executions of this conductor. */
  readonly onInbox: () => void;
  /** The near timers have changed. `isTakeover`: others may be in the database. */
  readonly onTimers: (isTakeover: boolean) => void;
  /** Sends a hint to other conductors. */
  readonly hint: (owners: readonly string[]) => void;
}

export class Dispatch {
  readonly #options: DispatchOptions;
  /** Since the last put. */
  #calls = 0;

  constructor(options: DispatchOptions) {
    this.#options = options;
  }

  /** The runs of one execution were committed, in this order. */
  won(runs: readonly FlowRun[]): void {
    const { calls, timers, ctx, onTimers } = this.#options;
    const nowMs = ctx.time.now();
    for (const run of runs) {
      this.#call(run.calls);
      for (const key of run.stops) calls.stop(ctx.tenant.id, key, 'cancelled');
      for (const mark of run.timers.cleared) timers.clear(mark);
      for (const mark of run.timers.set) timers.set(mark, nowMs);
      if (run.unhosted !== undefined && run.unhosted.length > 0) this.#hintHosts(run.unhosted);
    }
    if (runs.some((run) => run.timers.set.length > 0)) onTimers(false);
  }

  /** This conductor is the owner now. Repeats the calls under way; returns whether inner messages are left. */
  takenOver(execution: Execution): boolean {
    checkpoint('takeover.put');
    const { engine, view, onTimers } = this.#options;
    const { calls: unfinished, more } = engine.unfinished(execution, view().functions);
    this.#call(unfinished);
    onTimers(true);
    return more;
  }

  /** What a put has made for others. */
  announce({ lanes, cancelled, receivers }: Pick<PutResult, 'lanes' | 'cancelled' | 'receivers'>): void {
    const { ctx, view, onInbox, hint } = this.#options;
    if (lanes.length > 0) ctx.hints.send('ready', lanes);
    for (const { run, lease } of cancelled) ctx.hints.send('cancel', { tenant: ctx.tenant.id, run, lease });
    const { others } = view();
    const elsewhere = new Set<string>();
    for (const { owner } of receivers) if (owner !== null && others.has(owner)) elsewhere.add(owner);
    if (elsewhere.size > 0) hint([...elsewhere]);
    if (receivers.some(({ owner }) => owner === null || !others.has(owner))) onInbox();
    checkpoint('calls.made');
    if (this.#calls > 0) functionsCalled.emit(ctx.telemetry, { tenant: ctx.tenant.id, calls: this.#calls });
    this.#calls = 0;
  }

  #hintHosts(functions: readonly string[]): void {
    const { view, hint } = this.#options;
    const hosts = hostsOf(functions, view());
    if (hosts.length > 0) hint(hosts);
  }

  #call(made: readonly HostedCall[]): void {
    if (made.length === 0) return;
    const { calls, ctx, onAnswer } = this.#options;
    this.#calls += made.length;
    for (const call of made)
      calls.start(ctx.tenant, call, (_, outcome) => onAnswer(answerMessage(call, outcome, ctx.time.now())));
  }
}

function answerMessage({ execution, nid, attempt }: HostedCall, outcome: CallOutcome, nowMs: number): FlowMessage {
  return {
    id: `answer/${nid}/${attempt}`,
    execution,
    bornMs: nowMs,
    point: 'answer',
    actor: null,
    body: { point: 'answer', nid, attempt, outcome },
  };
}
