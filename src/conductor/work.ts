/**
 * Interprets a tenant's ready mailboxes in its turn, commits the results, and handles the outcome of each commit.
 *
 * | outcome of a commit | the mailbox | its letters |
 * |---|---|---|
 * | won | keeps the new state | are answered, and what the runs ask for is done |
 * | lost | is read again after a short pause | run again, at most `maxTries` times; then they are stored |
 * | known | is removed | are answered with the execution that has the key |
 * | refused by the database | is read again | run again one at a time; one that is refused alone is answered as refused |
 * | failed | is read again after a pause | run again |
 */
import type { EngineContext } from '../contract/context.ts';
import type { Execution, FlowEngine, FlowRun } from '../contract/flows.ts';
import type { FlowMessage } from '../contract/flow-messages.ts';
import { type Backoff, delayMs } from '../kernel/backoff.ts';
import { commitLimits, CommitLanes, type Committed, type Item, type ItemOutcome } from './commit-lanes.ts';
import type { Dispatch } from './dispatch.ts';
import { type MemberView, ownerOf } from './choose-owner.ts';
import { type Interpreting, needsPut } from './interpreting.ts';
import type { LetterEnd, Mailbox } from './mailbox.ts';
import type { Mailboxes } from './mailboxes.ts';
import type { TakeoverCause } from './sweeps.ts';
import { runsCommitted } from './telemetry.ts';
import type { Turns } from './turns.ts';

/** How long the messages of one tenant are interpreted before the event loop runs. */
const sliceMs = 10;
const maxTries = 8;
const afterLoss: Backoff = { firstMs: 4, capMs: 500, jitter: 1 };
const afterFailure: Backoff = { firstMs: 50, capMs: 2_000, jitter: 0.5 };

export interface WorkOptions {
  readonly engine: Pick<FlowEngine, 'put' | 'settle' | 'unfinished'>;
  readonly ctx: EngineContext;
  readonly mailboxes: Mailboxes;
  readonly interpreting: Interpreting;
  readonly dispatch: Dispatch;
  readonly turns: Turns;
  readonly view: () => MemberView;
  /** Another conductor drives this execution. */
  readonly onElsewhere: (execution: string) => void;
  /** Wakes conductors with these ids. */
  readonly hint: (owners: readonly string[]) => void;
  /** Mailboxes wait for their execution. */
  readonly onAbsent: () => void;
  readonly onError: (error: unknown) => void;
}

export class Work {
  readonly #options: WorkOptions;
  readonly #lanes: CommitLanes;
  /** Executions whose calls are repeated once their present letters are done. */
  readonly #takeovers = new Map<string, TakeoverCause>();
  readonly #pauses = new Map<Mailbox, NodeJS.Timeout>();
  #items: Item[] = [];
  #runs = 0;
  #bytes = 0;
  #isAbandoned = false;

  constructor(options: WorkOptions) {
    const { engine, ctx, view, onError } = options;
    this.#options = options;
    this.#lanes = new CommitLanes({
      engine,
      ctx,
      member: () => view().id,
      onCommitted: (committed) => this.#judge(committed),
      onFree: () => this.kick(),
      onError,
    });
  }

  get isIdle(): boolean {
    return this.#lanes.isIdle && this.#items.length === 0 && this.#pauses.size === 0;
  }

  /** Mailboxes are ready, or a lane is free. */
  kick(): void {
    const { mailboxes, turns } = this.#options;
    const hasWork = this.#items.length > 0 || mailboxes.count('ready') > 0;
    if (hasWork && this.#lanes.isFree) turns.ask(this);
  }

  /** Makes this conductor the owner of an execution, and repeats its calls. */
  takeOver(execution: string, why: TakeoverCause): void {
    if (this.#takeovers.has(execution)) return;
    this.#takeovers.set(execution, why);
    const message = continueMessage(execution, `takeover/${this.#options.view().id}`);
    this.#post(message, (ended) => {
      this.#takeovers.delete(execution);
      // it is for another conductor, which may not have opened the tenant
      if (why === 'orphan' && ended.kind === 'left' && ended.owner !== null) this.#options.hint([ended.owner]);
    });
  }

  #post(message: FlowMessage, end: (ended: LetterEnd) => void): void {
    this.#options.mailboxes.post({ message, end }, false);
    this.#options.onAbsent();
    this.kick();
  }

  /** Returns once all puts are answered. */
  drain(): Promise<void> {
    return this.#lanes.drain();
  }

  /** Lost answers are no longer looked for. Letters that come back from a commit are left. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#lanes.abandon();
    for (const timer of this.#pauses.values()) clearTimeout(timer);
    this.#pauses.clear();
  }

  turn(): boolean {
    const { mailboxes } = this.#options;
    if (!this.#lanes.isFree) return false;
    const endMs = performance.now() + sliceMs;
    while (!this.#isFull() && performance.now() < endMs) {
      const [box] = mailboxes.take('ready', 1);
      if (box === undefined) break;
      this.#interpret(box);
    }
    if (this.#isFull() || mailboxes.count('ready') === 0) this.#send();
    return this.#items.length > 0 || mailboxes.count('ready') > 0;
  }

  #isFull(): boolean {
    return this.#runs >= commitLimits.runs || this.#bytes >= commitLimits.bytes;
  }

  #send(): void {
    if (this.#items.length === 0) return;
    this.#lanes.send(this.#items);
    [this.#items, this.#runs, this.#bytes] = [[], 0, 0];
  }

  #interpret(box: Mailbox): void {
    const { interpreting, mailboxes, view, onElsewhere } = this.#options;
    const { execution } = box;
    if (execution === undefined) return mailboxes.forget(box);
    const [owner, { id: member }] = [ownerOf(execution, view()), view()];
    if (owner !== member && !this.#mayTakeFrom(owner, execution)) {
      onElsewhere(box.id);
      return mailboxes.endAll(box, { kind: 'left', owner });
    }
    const most = Math.min(commitLimits.runsOfExecution, commitLimits.runs - this.#runs, box.maxLetters);
    const { runs, bytes } = interpreting.run(box, execution, most);
    box.send(runs.length);
    if (!runs.some((run) => needsPut(run, member))) return this.#finish({ box, runs }, execution, { isNew: false });
    this.#items.push({ box, runs });
    this.#runs += runs.length;
    this.#bytes += bytes;
  }

  /**
   * An execution that waits for a function of this conductor is taken from an owner that does not host it, unless that is calling
   * functions of its own for it: both would otherwise take it from each other again and again.
   */
  #mayTakeFrom(owner: string, execution: Execution): boolean {
    if (this.#takeovers.get(execution.id) !== 'unhosted') return false;
    const { engine, view } = this.#options;
    const functions = view().others.get(owner)?.functions ?? new Set();
    return engine.unfinished(execution, functions).calls.length === 0;
  }

  #judge({ outcomes, news, member }: Committed): void {
    const { ctx, dispatch, onAbsent } = this.#options;
    const won = outcomes.filter(({ outcome }) => outcome.kind === 'won').map(({ item }) => item);
    for (const { item, outcome } of outcomes) this.#settle(item, outcome, member);
    dispatch.announce(news);
    const runs = won.flatMap((item) => item.runs);
    runsCommitted.emit(ctx.telemetry, {
      tenant: ctx.tenant.id,
      executions: won.length,
      runs: runs.length,
      lost: outcomes.filter(({ outcome }) => outcome.kind === 'lost').length,
      latenessMs: latenessOf(runs, ctx.time.now()),
    });
    onAbsent();
  }

  #settle(item: Item, outcome: ItemOutcome, member: string): void {
    const { box, runs } = item;
    switch (outcome.kind) {
      case 'won': {
        const first = runs[0]?.from;
        const last = runs.at(-1)?.to;
        if (first === undefined || last === undefined) return;
        const isNew = first.owner !== member;
        return this.#finish(item, { ...last, owner: member, epoch: first.epoch + (isNew ? 1 : 0) }, { isNew });
      }
      case 'known':
        box.endAway((i) => (i === 0 ? outcome : { kind: 'gone' }));
        return this.#options.mailboxes.endAll(box, { kind: 'gone' });
      case 'lost':
        return this.#repeat(box, afterLoss, { isLoss: true });
      case 'failed':
        return outcome.isRefused ? this.#isolate(box, outcome.error) : this.#repeat(box, afterFailure);
      default:
        return outcome satisfies never;
    }
  }

  /** The runs have had their effect. `isNew`: this conductor was not the owner before. */
  #finish({ box, runs }: Item, execution: Execution, { isNew }: { readonly isNew: boolean }): void {
    const { mailboxes, dispatch } = this.#options;
    box.failures = 0;
    box.maxLetters = Number.POSITIVE_INFINITY;
    const isTakeover = this.#takeovers.delete(box.id) || (isNew && (runs[0]?.from.rev ?? 0) > 0);
    let isMore = runs.at(-1)?.more === true;
    dispatch.won(runs);
    if (isTakeover) isMore = dispatch.takenOver(execution) || isMore;
    box.endAway((i) => endOf(runs[i]));
    if (execution.over && box.waiting.length === 0) mailboxes.forget(box);
    else mailboxes.load(box, execution);
    if (isMore) this.#post(continueMessage(box.id, `continue/${execution.rev}`), () => {});
  }

  #repeat(box: Mailbox, backoff: Backoff, { isLoss = false } = {}): void {
    const { mailboxes, onAbsent } = this.#options;
    box.bringBack();
    box.failures += 1;
    if (this.#isAbandoned) return mailboxes.endAll(box, { kind: 'left', owner: null });
    if (isLoss && box.failures > maxTries) {
      box.failures = 0;
      return mailboxes.endAll(box, { kind: 'left', owner: null });
    }
    box.phase = 'pausing';
    const again = setTimeout(
      () => {
        this.#pauses.delete(box);
        mailboxes.forget(box);
        onAbsent();
      },
      delayMs(backoff, box.failures - 1),
    );
    this.#pauses.set(box, again);
  }

  /** The database refuses the rows of this execution. */
  #isolate(box: Mailbox, error: unknown): void {
    const { mailboxes, onAbsent } = this.#options;
    if (box.away.length > 1) {
      box.maxLetters = 1;
      box.bringBack();
    } else {
      const detail = `the database refuses it: ${error instanceof Error ? error.message : String(error)}`;
      box.endAway(() => ({ kind: 'refused', code: 'internal', detail }));
    }
    mailboxes.forget(box);
    onAbsent();
  }
}

function endOf(run: FlowRun | undefined): LetterEnd {
  const refused = run?.refused ?? null;
  if (refused !== null) return { kind: 'refused', ...refused };
  return run !== undefined && isRepetition(run) ? { kind: 'known', execution: run.from.id } : { kind: 'committed' };
}

/** A signal or an operation changes the execution at least by its id, unless that came before. */
function isRepetition({ from, to, message: { point } }: FlowRun): boolean {
  return from === to && (point === 'signal' || point === 'operate');
}

function latenessOf(runs: readonly FlowRun[], nowMs: number): number[] {
  return runs
    .filter(({ message, refused }) => message.point === 'timer' && refused === null)
    .map(({ message }) => Math.max(0, nowMs - message.bornMs));
}

function continueMessage(execution: string, id: string): FlowMessage {
  return { id, execution, bornMs: 0, point: 'continue', actor: null, body: { point: 'continue' } };
}
