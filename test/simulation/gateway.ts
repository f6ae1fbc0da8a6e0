/**
 * The simulated gateway, which calls the real engine. Polls wait and are claimed for together; reports that arrive close to
 * each other are applied together, and sometimes take the waiting polls along. It may die between any two steps, and then
 * loses all waiting polls and reports.
 */
import type { Heartbeat, Poll } from '../../src/contract/engine.ts';
import type { ClaimedRun, HeldRun, Report } from '../../src/contract/wire.ts';
import { engine } from '../../src/engine/engine.ts';
import { second } from './documents.ts';
import type { World } from './world.ts';

interface Waiting {
  readonly poll: Poll;
  readonly answer: (runs: readonly ClaimedRun[]) => void;
}

const lanes = ['none:default'];
const maxPollMs = 20 * second;

export class Gateway {
  readonly #world: World;
  #polls: Waiting[] = [];
  #reports: { readonly reports: readonly Report[]; readonly acknowledge: () => void }[] = [];
  #dealing = false;

  constructor(world: World) {
    this.#world = world;
    world.on({ name: 'gateway', alive: true }, 'ready', () => this.#deal());
  }

  die(): void {
    this.#world.log('gateway', 'dies and comes back');
    this.#polls = [];
    this.#reports = [];
  }

  poll(poll: Omit<Poll, 'lanes'>, answer: Waiting['answer']): void {
    const waiting = { poll: { ...poll, lanes }, answer };
    this.#polls.push(waiting);
    this.#world.after(maxPollMs, () => {
      if (this.#polls.includes(waiting)) answer([]);
      this.#polls = this.#polls.filter((other) => other !== waiting);
    });
    this.#deal();
  }

  #deal(): void {
    if (this.#dealing) return;
    this.#dealing = true;
    this.#world.after(this.#world.random.int(0, 20), async () => {
      this.#dealing = false;
      if (this.#polls.length > 0) await this.#claim(this.#polls.splice(0));
    });
  }

  async #claim(waiting: readonly Waiting[]): Promise<void> {
    const deed = { kind: 'claim' as const, polls: waiting.map(({ poll }) => poll), answer: [] as ClaimedRun[][] };
    await this.#world.step('gateway', `claims for ${waiting.length}`, deed, async () => {
      deed.answer = this.#logHandOuts(await engine.runs.claim(this.#world.ctx, deed.polls));
    });
    this.#answer(waiting, deed.answer);
  }

  /** The order within a list is not defined. */
  #logHandOuts(lists: readonly (readonly ClaimedRun[])[]): ClaimedRun[][] {
    const answer = lists.map((runs) => runs.toSorted((a, b) => (a.run < b.run ? -1 : 1)));
    for (const run of answer.flat()) this.#world.log('gateway', `hands out ${this.#world.nameRun(run)}`);
    return answer;
  }

  #answer(waiting: readonly Waiting[], lists: readonly (readonly ClaimedRun[])[]): void {
    waiting.forEach((one, i) => {
      const runs = lists[i] ?? [];
      if (runs.length > 0) one.answer(runs);
      else this.#polls.push(one);
    });
  }

  report(reports: readonly Report[], acknowledge: () => void): void {
    this.#reports.push({ reports, acknowledge });
    if (this.#reports.length === 1) this.#world.after(this.#world.random.int(0, 50), () => this.#apply());
  }

  async #apply(): Promise<void> {
    const batch = this.#reports.splice(0);
    if (batch.length === 0) return;
    const reports = batch.flatMap((item) => item.reports);
    const waiting = this.#world.random.int(0, 2) > 0 ? this.#polls.splice(0) : [];
    const polls = waiting.map(({ poll }) => poll);
    const deed = { kind: 'report' as const, reports, polls, answer: [] as ClaimedRun[][] };
    await this.#world.step('gateway', `applies ${this.#formatReports(reports)}`, deed, async () => {
      const { runs = [] } = await engine.runs.report(this.#world.ctx, reports, polls);
      deed.answer = this.#logHandOuts(runs);
    });
    for (const { acknowledge } of batch) acknowledge();
    this.#answer(waiting, deed.answer);
  }

  async beat(beat: Heartbeat, answer: (lost: readonly HeldRun[], cancel: readonly HeldRun[]) => void): Promise<void> {
    const deed = { kind: 'renew' as const, beats: [beat] };
    const work = () => engine.runs.renew(this.#world.ctx, deed.beats);
    const signals = await this.#world.step(
      'gateway',
      `renews ${beat.holds.length} of ${beat.worker.slice(-1)}`,
      deed,
      work,
    );
    answer(signals?.[0]?.lost ?? [], signals?.[0]?.cancel ?? []);
  }

  #formatReports(reports: readonly Report[]): string {
    return reports.map(({ run, lease, state }) => `${state} of ${this.#world.runName(run)}/${lease}`).join(', ');
  }
}
