/**
 * The oracle of runs, tokens and limits (I2, I3, I4). It reads the journal commit by commit and works out independently
 * what must follow from each firing, result and request: counts, runs, retries and events. Anything that the product did
 * beyond that, or failed to do, is a fault.
 */
import { type FinalState, Graph } from './graph.ts';
import { type Change, type Commit, numberOf, type Row, textOf, timeOf } from './journal.ts';
import { Leases } from './leases.ts';
import { jobOf, Limits } from './limits.ts';
import { RetryBook } from './retry-book.ts';
import { type Fault, formatPlace, type HandOuts, type Names, placeOf, type Step } from './steps.ts';
import { type Caused, TokenBook } from './token-book.ts';

interface ModelRun {
  readonly id: string;
  readonly task: string;
  readonly instantMs: number;
  readonly attempt: number;
  readonly priority: string;
  phase: 'queued' | 'running' | 'finished';
  lease: number;
  losses: number;
  cancel: boolean;
  worker: string;
  incarnation: number;
  claimedMs: number;
  /** Its row in `live` as last seen. */
  row: Row;
}

export interface FiredInstant {
  readonly trigger: string;
  readonly instantMs: number;
  readonly cause: string;
  readonly atMs: number;
}

export class Ledger {
  readonly fired: FiredInstant[] = [];
  /** Faults with the step they occurred in; empty if there were none. */
  readonly faults: { readonly step: number; readonly message: string }[] = [];
  readonly runs = new Map<string, ModelRun>();
  readonly #names: Names;
  readonly #graph = new Graph();
  readonly #tokens: TokenBook;
  readonly #retries = new RetryBook();
  readonly #leases = new Leases();
  readonly #limits = new Limits();
  readonly #handedOut = new Set<string>();
  /** Jobs with a cancelled backfill: its queued runs and waiting retries may be cancelled at any time. */
  readonly #calledOff = new Set<string>();
  #lastSeq = 0;

  constructor(names: Names) {
    this.#names = names;
    this.#tokens = new TokenBook(this.#graph, names);
  }

  /** Judges one step of the world by its commits. */
  take(step: Step, commits: readonly Commit[]): void {
    const fault = (message: string): void => void this.faults.push({ step: step.number, message });
    if (step.refused) {
      if (commits.length > 0) fault('a refused request changed something');
      return;
    }
    const awaited = this.#awaitedReports(step);
    this.#begin(step);
    for (const commit of commits) this.#judge(step, commit, fault);
    for (const { run, lease } of awaited) {
      if (run.phase === 'running' && run.lease === lease)
        fault(`${formatRun(run)} was reported under its lease, without effect (I3)`);
    }
    if (step.deed.kind === 'claim' || step.deed.kind === 'report') compareAnswer(step.deed, commits, fault);
  }

  /** Returns a fault for everything that is unfinished at the end. */
  end(): string[] {
    return [
      ...this.#open().map((run) => `${formatRun(run)} was left behind ${run.phase} (I4)`),
      ...this.#retries.findLeftBehind(),
      ...this.#tokens.findLeftBehind(),
    ];
  }

  #open(): ModelRun[] {
    return [...this.runs.values()].filter((run) => run.phase !== 'finished');
  }

  /** Updates the model with the deed itself, before judging its consequences. */
  #begin({ deed, atMs }: Step): void {
    if (deed.kind === 'apply') {
      this.#graph.apply(deed.job);
      this.#limits.recordApply(deed.job);
    }
    if (deed.kind === 'delete') this.#graph.remove(deed.job);
    if (deed.kind === 'apply' || deed.kind === 'delete') {
      this.#tokens.drop();
      this.#retries.callOff((retry) => this.#graph.task(retry.task).removed);
    }
    if (deed.kind === 'cancel backfill') this.#calledOff.add(deed.job);
    if (deed.kind === 'pool') this.#limits.setPool(deed.name, deed.places);
    if (deed.kind === 'pause') this.#graph.pause(deed.job, deed.paused);
    if (deed.kind === 'renew') for (const beat of deed.beats) this.#leases.recordHeartbeat(beat, atMs);
    if (deed.kind === 'cancel') this.#retries.callOff((_, run) => run === deed.run);
    if (deed.kind === 'activate' || deed.kind === 'run') {
      const places = this.#activated(deed);
      this.#retries.callOff((retry) => places.has(placeOf(retry.task, retry.instantMs)));
    }
    if (deed.kind === 'clear') {
      const isCleared = (at: { task: string; instantMs: number }): boolean =>
        at.instantMs === deed.instantMs && jobOf(at.task) === deed.job;
      this.#tokens.clear(isCleared);
      this.#retries.callOff(isCleared);
    }
  }

  #awaitedReports({ deed }: Step): { readonly run: ModelRun; readonly lease: number }[] {
    if (deed.kind !== 'report') return [];
    return deed.reports.flatMap((report) => {
      const run = this.runs.get(report.run);
      return run?.phase === 'running' && run.lease === report.lease ? [{ run, lease: report.lease }] : [];
    });
  }

  #judge(step: Step, { changes }: Commit, fault: Fault): void {
    const of = (table: string): Change[] => changes.filter((change) => change.table === table);
    const finished = of('run').flatMap(({ after }) => (after ? [after] : []));
    const made = of('live').flatMap(({ before, after }) => (before || !after ? [] : [after]));
    const gone = of('live').flatMap(({ after, before }) => (after ? [] : [textOf(before, 'id')]));
    for (const row of made) this.#make(row, fault);
    if (!sameMembers(gone, idsOf(finished))) fault('a run left the queue without a result');
    const arrivals = [
      ...of('firing').flatMap(({ after }) => (after ? this.#fire(step, after) : [])),
      ...this.#finish(step, finished, of('retry'), fault),
    ];
    // what a result has freed may be taken in the same commit
    this.#limits.settle((job, instantMs) => this.#isOver(job, instantMs));
    for (const { before, after } of of('live')) if (before && after) this.#move(step, before, after, fault);
    this.#judgeOrder(of('live'), fault);
    const first = made.filter((row) => numberOf(row, 'attempt') === 1);
    this.#tokens.judge({ arrivals, made: first, tokens: of('token'), activated: this.#activated(step.deed) }, fault);
    this.#callOff(of('retry'), made);
    this.#retries.judge(of('retry'), made, step.atMs, fault);
    this.#judgeEvents(of('event'), { made, finished }, fault);
    this.#limits.settle((job, instantMs) => this.#isOver(job, instantMs));
  }

  #make(row: Row, fault: Fault): void {
    const id = textOf(row, 'id');
    if (this.runs.has(id)) fault('a run was made twice');
    const task = this.#nameOf(row, 'task_id');
    const [instantMs, attempt, priority] = [timeOf(row, 'instant'), numberOf(row, 'attempt'), textOf(row, 'priority')];
    const hands = { lease: 0, losses: 0, cancel: false, worker: '', incarnation: 0, claimedMs: 0 };
    this.runs.set(id, { id, task, instantMs, attempt, priority, phase: 'queued', ...hands, row });
  }

  #fire({ atMs }: Step, row: Row): Caused[] {
    const trigger = this.#nameOf(row, 'trigger_id');
    const instantMs = timeOf(row, 'instant');
    this.fired.push({ trigger, instantMs, cause: textOf(row, 'cause'), atMs });
    const cause = textOf(row, 'trigger_id');
    return this.#graph.arrivalsOfFiring(trigger, instantMs).map((arrival) => ({ ...arrival, cause }));
  }

  /** An unfinished run was handed out, taken back, parked or marked for cancellation. */
  #move(step: Step, before: Row, after: Row, fault: Fault): void {
    const run = this.runs.get(textOf(after, 'id'));
    if (run === undefined) return fault('an unknown run changed');
    run.row = after;
    const [held, holds] = [before['worker_id'] !== null, after['worker_id'] !== null];
    if (!held && holds) this.#handOut(step, run, after, fault);
    else if (held && !holds) this.#takeBack(step, run, after, fault);
    else if (before['worker_id'] !== after['worker_id']) fault(`${formatRun(run)} went from worker to worker (I4)`);
    if (numberOf(after, 'lease') !== run.lease) fault(`${formatRun(run)} has lease ${textOf(after, 'lease')} (I4)`);
    const { paused } = this.#graph.task(run.task);
    if (before['parked'] !== after['parked'] && after['parked'] !== paused) {
      fault(`${formatRun(run)} was ${paused ? 'un' : ''}parked while its job was ${paused ? '' : 'not '}paused`);
    }
    if (before['cancel'] !== after['cancel']) this.#markCancelled(step, run, after, fault);
  }

  #handOut({ deed, atMs }: Step, run: ModelRun, row: Row, fault: Fault): void {
    if (deed.kind !== 'claim' && deed.kind !== 'report') fault(`${formatRun(run)} was handed out without a claim`);
    if (run.phase !== 'queued') fault(`${formatRun(run)} was handed out while it was ${run.phase} (I4)`);
    if (this.#graph.task(run.task).paused) fault(`${formatRun(run)} was handed out while its job was paused`);
    run.lease += 1;
    const hand = `${run.id} ${numberOf(row, 'lease')}`;
    if (this.#handedOut.has(hand)) fault(`${formatRun(run)} was handed out twice under one lease (I4)`);
    this.#handedOut.add(hand);
    run.phase = 'running';
    run.worker = textOf(row, 'worker_id');
    run.incarnation = numberOf(row, 'incarnation');
    run.claimedMs = atMs;
    this.#leases.recordClaim(run.worker, run.incarnation, atMs);
    this.#limits.judge(run, this.#open(), fault);
  }

  /** No run that is ready was passed over by one of its lane that was handed out. */
  #judgeOrder(changes: readonly Change[], fault: Fault): void {
    const handed = changes.flatMap(({ before, after }) => (before?.['worker_id'] === null && after ? [after] : []));
    const last = handed
      .filter((row) => row['worker_id'] !== null)
      .toSorted(compareRank)
      .at(-1);
    if (last === undefined) return;
    const passedOver = this.#open().find(({ phase, task, row }) => {
      const isReady = phase === 'queued' && row['parked'] === false && row['gate'] === null;
      return isReady && !this.#graph.task(task).paused && row['lane'] === last['lane'] && compareRank(row, last) < 0;
    });
    if (passedOver) fault(`${formatRun(passedOver)} was passed over`);
  }

  #takeBack({ deed, atMs }: Step, run: ModelRun, row: Row, fault: Fault): void {
    const lost = numberOf(row, 'losses') === run.losses + 1;
    const reports = deed.kind === 'report' ? deed.reports.filter((report) => isFor(run, report)) : [];
    const returned = reports.some(({ state }) => state === 'returned');
    const reportedLost = reports.some(({ state }) => state === 'lost');
    if (lost && !reportedLost && !this.#leases.isLost(run, atMs))
      fault(`${formatRun(run)} was taken from a worker that lives (I4)`);
    if (!lost && !returned) fault(`${formatRun(run)} came back without being returned or lost (I4)`);
    if (lost && run.losses === 2) fault(`${formatRun(run)} was lost three times and came back (I4)`);
    if (run.cancel) fault(`${formatRun(run)} came back though it was to be cancelled`);
    if (lost) run.losses += 1;
    run.phase = 'queued';
  }

  #markCancelled({ deed }: Step, run: ModelRun, row: Row, fault: Fault): void {
    const job = jobOf(run.task);
    const wished = deed.kind === 'cancel' ? deed.run === run.id : deed.kind === 'delete' && deed.job === job;
    run.cancel = row['cancel'] === true;
    if (!run.cancel || !(wished || this.#limits.mayGiveWay(run))) {
      fault(`${formatRun(run)} was marked for cancellation without a reason`);
    }
  }

  /** Checks that each result may take effect (I3). Returns the counts that follow. */
  #finish(step: Step, rows: readonly Row[], retries: readonly Change[], fault: Fault): Caused[] {
    return rows.flatMap((row) => {
      const run = this.runs.get(textOf(row, 'id'));
      const state = textOf(row, 'state') as FinalState;
      if (run === undefined || run.phase === 'finished') {
        fault(`a run ended twice, or never existed (I3)`);
        return [];
      }
      if (!this.#mayEnd(step, run, state)) fault(`${formatRun(run)} must not end in ${state} here (I3)`);
      run.phase = 'finished';
      const end = { run, state, atMs: step.atMs };
      if (this.#retries.checkRetry(end, this.#graph.task(run.task), retries, fault)) return [];
      return this.#graph
        .arrivalsOfEnd(run.task, run.instantMs, state)
        .map((arrival) => ({ ...arrival, cause: run.id }));
    });
  }

  #mayEnd({ deed, atMs }: Step, run: ModelRun, state: FinalState): boolean {
    if (run.phase === 'queued') {
      const wished = deed.kind === 'cancel' && deed.run === run.id;
      const removed = this.#graph.task(run.task).removed;
      return state === 'cancelled' && (wished || removed || this.#mayBeCalledOff(run));
    }
    if (deed.kind === 'report') {
      return deed.reports.some((report) => {
        if (!isFor(run, report)) return false;
        if (report.state === 'returned') return run.cancel && state === 'cancelled';
        if (report.state === 'lost') return run.cancel ? state === 'cancelled' : run.losses === 2 && state === 'error';
        return state === (run.cancel && report.state !== 'success' ? 'cancelled' : report.state);
      });
    }
    if (deed.kind !== 'statement' || !this.#leases.isLost(run, atMs)) return false;
    return run.cancel ? state === 'cancelled' : run.losses === 2 && state === 'error';
  }

  /** Whether a run or retry may be cancelled in favour of another instant, or with its backfill. */
  #mayBeCalledOff(one: Parameters<Limits['mayGiveWay']>[0]): boolean {
    return this.#limits.mayGiveWay(one) || (one.priority === 'backfill' && this.#calledOff.has(jobOf(one.task)));
  }

  #activated(deed: Step['deed']): Set<string> {
    if (deed.kind === 'activate') return new Set([placeOf(deed.task, deed.instantMs)]);
    if (deed.kind !== 'run') return new Set();
    return new Set(this.#graph.entries(deed.job).map((task) => placeOf(task, deed.instantMs)));
  }

  /** Removes cancelled retries of an instant that gave way to another, or of a backfill. */
  #callOff(changes: readonly Change[], made: readonly Row[]): void {
    const causes = new Set(made.map((row) => textOf(row, 'cause')));
    const gone = new Set(changes.flatMap(({ before, after }) => (before && !after ? [textOf(before, 'run_id')] : [])));
    this.#retries.callOff((retry, run) => gone.has(run) && !causes.has(run) && this.#mayBeCalledOff(retry));
  }

  #isOver(job: string, instantMs: number): boolean {
    const isHere = (at: { task: string; instantMs: number }): boolean =>
      at.instantMs === instantMs && jobOf(at.task) === job;
    return !this.#open().some(isHere) && !this.#retries.has(isHere);
  }

  /** Each run has one event when it is made and one when it ends, in the same commit and with increasing numbers. */
  #judgeEvents(
    changes: readonly Change[],
    runs: { made: readonly Row[]; finished: readonly Row[] },
    fault: Fault,
  ): void {
    const events = changes.flatMap(({ after }) => (after ? [after] : []));
    for (const event of events) {
      if (numberOf(event, 'seq') <= this.#lastSeq) fault('the event log went backwards');
      this.#lastSeq = numberOf(event, 'seq');
    }
    const subjects = (type: string): string[] =>
      events.filter((event) => event['type'] === type).map((event) => textOf(event, 'subject'));
    if (!sameMembers(subjects('run.created'), idsOf(runs.made)))
      fault('the run.created events do not match the created runs');
    if (!sameMembers(subjects('run.finished'), idsOf(runs.finished)))
      fault('the run.finished events do not match the ended runs');
  }

  #nameOf(row: Row, column: string): string {
    return this.#names.get(textOf(row, column)) ?? '';
  }
}

/** The order in which ready runs are handed out. */
function compareRank(a: Row, b: Row): number {
  return timeOf(a, 'rank') - timeOf(b, 'rank') || (textOf(a, 'id') < textOf(b, 'id') ? -1 : 1);
}

/** An answer must have exactly the runs that were handed out, to the right worker, and no more than there were places. */
function compareAnswer({ polls, answer }: HandOuts, commits: readonly Commit[], fault: Fault): void {
  const answered = answer.flatMap((runs, i) => runs.map((run) => `${run.run} ${run.lease} ${polls[i]?.worker}`));
  const handed = commits
    .flatMap(({ changes }) => changes)
    .filter(({ table, before }) => table === 'live' && before?.['worker_id'] === null)
    .filter(({ after }) => after !== undefined && after['worker_id'] !== null)
    .map(({ after }) => `${textOf(after, 'id')} ${textOf(after, 'lease')} ${textOf(after, 'worker_id')}`);
  if (!sameMembers(answered, handed)) fault('a claim did not answer the runs it handed out (I4)');
  if (answer.some((runs, i) => runs.length > (polls[i]?.free ?? 0))) fault('a claim answered more runs than places');
}

function isFor(run: ModelRun, report: { readonly run: string; readonly lease: number }): boolean {
  return report.run === run.id && report.lease === run.lease;
}

function formatRun(run: ModelRun): string {
  return `attempt ${run.attempt} of ${formatPlace(run)}`;
}

function idsOf(rows: readonly Row[]): string[] {
  return rows.map((row) => textOf(row, 'id'));
}

function sameMembers(some: readonly string[], others: readonly string[]): boolean {
  return some.toSorted().join() === others.toSorted().join();
}
