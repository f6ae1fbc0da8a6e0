/**
 * A simulated worker as the gateway sees it: it polls, runs tasks for a while, repeats reports until they are acknowledged
 * and lists its runs in heartbeats. It may die, freeze and continue with its runs, or shut down and return them.
 */
import type { ClaimedRun, HeldRun, ReportState } from '../../src/contract/wire.ts';
import { second } from './documents.ts';
import type { Fortune } from './fortune.ts';
import type { Gateway } from './gateway.ts';
import type { World } from './world.ts';

interface Held extends HeldRun {
  /** Result of the run; undefined while it runs. */
  state: ReportState | undefined;
}

const pollAgainMs = 25 * second;
const reportAgainMs = 3 * second;
/** Longer than a real worker's interval, so that a world takes fewer steps; three heartbeats still fit into a lease. */
const beatMs = 9 * second;

export class SimulatedWorker {
  readonly id: string;
  readonly name: string;
  readonly #world: World;
  readonly #gateway: Gateway;
  readonly #fortune: Fortune;
  readonly #places: number;
  #incarnation = 0;
  #alive = false;
  #frozenUntilMs = 0;
  #poll = 0;
  #polling = false;
  readonly #holds = new Map<string, Held>();

  constructor(world: World, gateway: Gateway, number: number, fortune: Fortune) {
    this.#world = world;
    this.#gateway = gateway;
    this.#fortune = fortune;
    this.#places = world.random.int(1, 4);
    this.name = `worker ${number}`;
    this.id = `00000000-0000-7000-9000-00000000000${number}`;
  }

  start(): void {
    if (this.#alive) return;
    this.#alive = true;
    this.#incarnation = this.#world.now;
    this.#world.log(this.name, `starts with ${this.#places} places`);
    this.#ask();
    this.#beat();
  }

  /** Dies and forgets its runs. */
  die(): void {
    this.#world.log(this.name, 'dies');
    this.#alive = false;
    this.#polling = false;
    this.#holds.clear();
  }

  /** Stands still for a while, then continues as if no time had passed. */
  freeze(ms: number): void {
    this.#world.log(this.name, `freezes for ${ms / second} s`);
    this.#frozenUntilMs = this.#world.now + ms;
  }

  /** Returns its running runs and ends. */
  leave(): void {
    for (const held of this.#holds.values()) held.state ??= 'returned';
    this.#report();
    this.die();
  }

  /** Schedules an action for this incarnation; it is delayed while the worker is frozen. */
  #later(ms: number, happen: () => void): void {
    const life = this.#incarnation;
    const attempt = (): void => {
      if (!this.#alive || this.#incarnation !== life) return;
      const frozenMs = this.#frozenUntilMs - this.#world.now;
      if (frozenMs > 0) this.#world.after(frozenMs, attempt);
      else happen();
    };
    this.#world.after(ms, attempt);
  }

  /** Wraps the handling of an answer so that it happens only in the incarnation that asked. */
  #onAnswer(happen: () => void): () => void {
    const life = this.#incarnation;
    return () => {
      if (this.#alive && this.#incarnation === life) this.#later(0, happen);
    };
  }

  #ask(): void {
    const free = this.#places - this.#holds.size;
    if (this.#polling || free <= 0) return;
    this.#polling = true;
    const number = ++this.#poll;
    const poll = { worker: this.id, incarnation: this.#incarnation, free };
    const answered = (runs: readonly ClaimedRun[]): void =>
      this.#world.send(this.#onAnswer(() => this.#take(number, runs)));
    this.#world.send(() => this.#gateway.poll(poll, answered));
    this.#later(pollAgainMs, () => this.#take(number, []));
  }

  /** Ignores the answer to a poll that was given up. */
  #take(number: number, runs: readonly ClaimedRun[]): void {
    if (number !== this.#poll || !this.#polling) return;
    this.#polling = false;
    for (const run of runs) this.#run(run);
    this.#ask();
  }

  #run(run: ClaimedRun): void {
    const { tenant, run: id, lease } = run;
    const held: Held = { tenant, run: id, lease, state: undefined };
    this.#holds.set(id, held);
    const { state, ms } = this.#fortune(run);
    this.#later(ms, () => this.#end(held, state));
  }

  #end(held: Held, state: ReportState): void {
    if (this.#holds.get(held.run) !== held || held.state !== undefined) return;
    held.state = state;
    this.#report();
  }

  /** Reports every ended run that is not acknowledged yet. */
  #report(): void {
    const ended = [...this.#holds.values()].filter((held) => held.state !== undefined);
    if (ended.length === 0) return;
    const reports = ended.map(({ tenant, run, lease, state }) => ({
      tenant,
      run,
      lease,
      state: state ?? 'error',
      reason: null,
      exit_code: null,
      started_at: null,
    }));
    const acknowledged = (): void => this.#world.send(this.#onAnswer(() => this.#forget(ended)));
    this.#world.send(() => this.#gateway.report(reports, acknowledged));
    this.#later(reportAgainMs, () => this.#report());
  }

  #forget(ended: readonly Held[]): void {
    for (const held of ended) if (this.#holds.get(held.run) === held) this.#holds.delete(held.run);
    this.#ask();
  }

  #beat(): void {
    const holds = Array.from(this.#holds.values(), ({ tenant, run, lease }) => ({ tenant, run, lease }));
    const beat = { worker: this.id, incarnation: this.#incarnation, holds };
    const answered = (lost: readonly HeldRun[], cancel: readonly HeldRun[]): void =>
      this.#world.send(this.#onAnswer(() => this.#obey(lost, cancel)));
    this.#world.send(() => this.#gateway.beat(beat, answered));
    this.#later(beatMs, () => this.#beat());
  }

  #obey(lost: readonly HeldRun[], cancel: readonly HeldRun[]): void {
    for (const { run, lease } of lost) if (this.#holds.get(run)?.lease === lease) this.#holds.delete(run);
    for (const { run, lease } of cancel) {
      const held = this.#holds.get(run);
      if (held?.lease === lease) this.#end(held, 'cancelled');
    }
    this.#ask();
  }
}
