/**
 * The schedulers of a world: real ones, in processes that may die at any statement. There is meant to be one at a time;
 * now and then there are two (I5), or none for a while.
 */
import type { Service } from '../../src/kernel/service.ts';
import { makeScheduler } from '../../src/scheduler/scheduler.ts';
import { second } from './documents.ts';
import type { Fate, Process } from './door.ts';
import type { Uptime } from './firings.ts';
import type { World } from './world.ts';

interface Running extends Process {
  readonly service: Service;
  /** Since when it has been up; undefined: it is starting or stopping. */
  uptime: Uptime | undefined;
}

export class Schedulers {
  readonly uptimes: Uptime[] = [];
  readonly #world: World;
  #running: Running[] = [];
  #count = 0;
  /** When the next one starts, where none is left. */
  #startMs: number | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** What becomes of the next statement: mostly nothing. Those that died are followed by others, sooner or later. */
  readonly fate = (): Fate => {
    if (!this.#world.chaos) return 'served';
    return this.#world.random.weighted<Fate>({
      served: 980,
      'lost before': 6,
      'lost after': 6,
      'died before': 4,
      'died after': 4,
    });
  };

  start(): void {
    const world = this.#world;
    const process: Process = { name: `scheduler ${++this.#count}`, alive: true };
    const service = makeScheduler(world.contextOf(process, world.door.poolOf(process)));
    const running = Object.assign(process, { service, uptime: undefined });
    this.#running.push(running);
    world.tell(process.name, 'starts');
    service.start().then(
      () => this.#begin(running),
      () => this.#end(running),
    );
  }

  /** Ends one: it stops as it should, or no part of it moves any more, as after kill -9. */
  end(): void {
    const { random } = this.#world;
    const chosen = random.maybe(this.#running.filter(({ alive }) => alive));
    if (chosen === undefined) return;
    if (random.chance(0.6)) return this.#end(chosen);
    this.#world.tell(chosen.name, 'stops');
    chosen.uptime = undefined;
    void chosen.service.stop().finally(() => this.#end(chosen));
  }

  /** Whether one has been up for that long. */
  isUpFor(ms: number): boolean {
    return this.#running.some(({ uptime }) => uptime !== undefined && this.#world.now - uptime.fromMs >= ms);
  }

  /** Looks after them: counts the time they were up, and starts another where none is left, in the calm at once. */
  tend(): void {
    const { now, chaos, random } = this.#world;
    for (const process of this.#running.filter(({ alive }) => !alive)) this.#end(process);
    for (const { uptime } of this.#running) if (uptime) uptime.toMs = now;
    if (this.#running.length > 0) this.#startMs = undefined;
    else if (!chaos || now >= (this.#startMs ?? Number.POSITIVE_INFINITY)) this.start();
    else this.#startMs ??= now + random.pick([0, 1, 5, 30, 80]) * second;
  }

  /** Everybody slept: whatever was up was not up through it. */
  overslept(): void {
    for (const process of this.#running) if (process.uptime) this.#begin(process);
  }

  #begin(process: Running): void {
    if (!process.alive) return;
    process.uptime = { fromMs: this.#world.now, toMs: this.#world.now };
    this.uptimes.push(process.uptime);
  }

  #end(process: Running): void {
    this.#world.tell(process.name, 'is dead');
    process.alive = false;
    this.#running = this.#running.filter((other) => other !== process);
  }
}
