/**
 * A worker that breaks the rules: it forgets runs, reports twice or to both gateways at once, reports long after its lease
 * was lost, dies and comes back as a new incarnation. None of this may change the outcome (I3, I4).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClaimedRun, Report } from '../../src/contract/wire.ts';
import { newId } from '../../src/kernel/id.ts';
import type { Dice } from './dice.ts';
import type { Rival } from './rivals.ts';

/** Percentage of runs that each fault happens to. */
const sloppyRates = { forgotten: 3, late: 5, contradicted: 5, failed: 15 };
const correctRates = { forgotten: 0, late: 0, contradicted: 0, failed: 0 };

const places = 40;
const heartbeatMs = 100;
/** From the next attempt on a run succeeds: more failures would only take time. */
const maxFailures = 3;

export class SloppyWorker {
  readonly #rivals: readonly Rival[];
  readonly #dice: Dice;
  readonly #id = newId();
  readonly #held = new Map<string, ClaimedRun>();
  /** Reports that it holds back too long. */
  readonly #late: Report[] = [];
  readonly #over = new AbortController();
  readonly #working: Promise<unknown>;
  /** All reports ever sent, as `run lease state`. Shared by all workers. */
  readonly #reported: Set<string>;
  #rates = sloppyRates;
  #incarnation = 1;

  constructor(rivals: readonly Rival[], dice: Dice, reported: Set<string>) {
    this.#rivals = rivals;
    this.#dice = dice;
    this.#reported = reported;
    this.#working = Promise.all([this.#workOn(), this.#beatOn()]);
  }

  /** Starts a new incarnation. It loses all its runs, but still sends late reports of the earlier one. */
  die(): void {
    this.#incarnation++;
    this.#held.clear();
  }

  /** Sends all late reports, and makes no more mistakes from now on. */
  async behave(): Promise<void> {
    this.#rates = correctRates;
    await this.#send(this.#late.splice(0));
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#working;
  }

  get #rival(): Rival {
    return this.#dice.next(this.#rivals);
  }

  async #workOn(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const runs = await this.#claim();
      for (const run of runs) this.#held.set(run.run, run);
      await this.#send(runs.flatMap((run) => this.#work(run)));
      if (this.#late.length > 20) await this.#send(this.#late.splice(0, 10));
    }
  }

  #claim(): Promise<ClaimedRun[]> {
    const self = { worker: this.#id, incarnation: this.#incarnation, free: places, wait_ms: 50, seen: {} };
    const serves = { runtimes: ['none' as const, 'function' as const, 'process' as const], queues: ['default'] };
    return this.#rival.claims.claim({ ...self, ...serves }, this.#over.signal);
  }

  /** Returns the reports to send at once. */
  #work(run: ClaimedRun): Report[] {
    const { forgotten, late, contradicted, failed } = this.#rates;
    const fails = run.attempt <= maxFailures && this.#dice.upTo(100) < failed;
    const report = reportOf(run, fails ? 'failure' : 'success');
    const fate = this.#dice.upTo(100);
    if (fate < forgotten + late) this.#held.delete(run.run);
    if (fate < forgotten) return [];
    if (fate < forgotten + late) {
      this.#late.push(report);
      return [];
    }
    return fate < forgotten + late + contradicted ? [report, reportOf(run, 'failure')] : [report];
  }

  /** Sends to one of the gateways, or to both at once in opposite orders. */
  async #send(reports: readonly Report[]): Promise<void> {
    if (reports.length === 0) return;
    for (const { run, lease, state } of reports) this.#reported.add(`${run} ${lease} ${state}`);
    const both = this.#dice.upTo(4) === 0;
    const sent = both
      ? this.#rivals.map((rival, i) => rival.reports.report(i === 0 ? reports : reports.toReversed()))
      : [this.#rival.reports.report(reports)];
    const [failure] = (await Promise.all(sent)).flat();
    if (failure !== undefined) throw new Error(`a report failed: ${failure.detail}`);
    for (const { run } of reports) this.#held.delete(run);
  }

  async #beatOn(): Promise<void> {
    while (!this.#over.signal.aborted) {
      await sleep(heartbeatMs);
      const { engine, ctx } = this.#rival.tenant;
      const holds = [...this.#held.values()].map(({ tenant, run, lease }) => ({ tenant, run, lease }));
      await engine.runs.renew(ctx, [{ worker: this.#id, incarnation: this.#incarnation, holds }]);
    }
  }
}

function reportOf({ tenant, run, lease }: ClaimedRun, state: 'success' | 'failure'): Report {
  return { tenant, run, lease, state, reason: null, exit_code: null, started_at: null };
}
