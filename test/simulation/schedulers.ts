/**
 * The schedulers of a world: real ones, in simulated processes that may die at any statement. Normally one runs at a
 * time; occasionally there are two (I5), or none for a while.
 */
import type { Service } from '../../src/kernel/service.ts';
import { makeScheduler } from '../../src/scheduler/scheduler.ts';
import { second } from './documents.ts';
import type { Fate, Process } from './door.ts';
import type { Uptime } from './firings.ts';
import type { World } from './world.ts';

interface Running extends Process {
  readonly service: Service;
  /** The current span of being up; undefined while it starts or stops. */
  uptime: Uptime | undefined;
}

export class Schedulers {
  readonly uptimes: Uptime[] = [];
  readonly #world: World;
  #running: Running[] = [];
  #count = 0;
  /** When the next scheduler starts, if none is left. */
  #startMs: number | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** Draws the fate of the next statement. A dead scheduler is replaced sooner or later (see `tend`). */
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
    world.log(process.name, 'starts');
    service.start().then(
      () => this.#begin(running),
      () => this.#end(running),
    );
  }

  /** Ends one scheduler: by an orderly stop, or at once as after kill -9. */
  end(): void {
    const { random } = this.#world;
    const chosen = random.maybe(this.#running.filter(({ alive }) => alive));
    if (chosen === undefined) return;
    if (random.chance(0.6)) return this.#end(chosen);
    this.#world.log(chosen.name, 'stops');
    chosen.uptime = undefined;
    void chosen.service.stop().finally(() => this.#end(chosen));
  }

  /** Whether a scheduler has been up for that long. */
  isUpFor(ms: number): boolean {
    return this.#running.some(({ uptime }) => uptime !== undefined && this.#world.now - uptime.fromMs >= ms);
  }

  /** Records uptimes, and replaces the last scheduler after it died: at once in the calm, after a delay in the chaos. */
  tend(): void {
    const { now, chaos, random } = this.#world;
    for (const process of this.#running.filter(({ alive }) => !alive)) this.#end(process);
    for (const { uptime } of this.#running) if (uptime) uptime.toMs = now;
    if (this.#running.length > 0) this.#startMs = undefined;
    else if (!chaos || now >= (this.#startMs ?? Number.POSITIVE_INFINITY)) this.start();
    else this.#startMs ??= now + random.pick([0, 1, 5, 30, 80]) * second;
  }

  /** The machine slept, so the current spans of being up end here. */
  restartUptimes(): void {
    for (const process of this.#running) if (process.uptime) this.#begin(process);
  }

  #begin(process: Running): void {
    if (!process.alive) return;
    process.uptime = { fromMs: this.#world.now, toMs: this.#world.now };
    this.uptimes.push(process.uptime);
  }

  #end(process: Running): void {
    this.#world.log(process.name, 'is dead');
    process.alive = false;
    this.#running = this.#running.filter((other) => other !== process);
  }
}
