/**
 * Hosts that were requested and have not registered yet. No more are requested than are missing. If a process ends before it
 * registers, the next one is requested after a growing pause, and the tenants that wait for a host get the reason.
 */
import { checkpoint } from '../checkpoints.ts';
import { performance } from 'node:perf_hooks';
import type { Log } from '../../kernel/log.ts';
import { machine } from '../../kernel/process/machine.ts';
import { LogThrottle } from '../../kernel/log-throttle.ts';
import type { LaunchHost } from '../launch-queries.ts';
import { retryDelayMs } from '../retry-backoff.ts';

/** How hosts come to be, and how one that was written off is made sure of. Both return at once, and throw nothing. */
export interface HostsPort {
  /**
   * One more host of this engine version is wanted. Answers the process that will be it; undefined: somebody else starts it,
   * or nothing could be started. `onEnd`: it has ended like this, whenever that is, or did not come to be.
   */
  spawn(engineVersion: string, onEnd: (how: string) => void): number | undefined;
  /** A host that was written off is ended for good, where it is one of this machine. */
  kill(host: HostProcess): void;
  /** How a process of this machine has ended: "exited with code 1". Undefined: it lives, or is of another machine. */
  fate(host: HostProcess): string | undefined;
}

export interface HostProcess {
  readonly machine: string;
  readonly pid: number;
  /** It is as old at least. */
  readonly ageMs?: number;
}

export interface HostFault {
  /** How the last process ended, and how many ended in a row. */
  readonly how: string;
  readonly times: number;
  /** None is requested now: the existing ones share the tenants. */
  readonly isPausing: boolean;
  /** Why the engine's code cannot be loaded; undefined: it can, or that is not known yet. */
  readonly engineFault: string | undefined;
}

interface Asked {
  readonly engine: string;
  /** By the server's clock, and by one that only runs. */
  readonly at: Date;
  readonly sinceMs: number;
  /** Undefined: not known. */
  pid?: number | undefined;
}

interface Fault {
  readonly how: string;
  readonly times: number;
  readonly untilMs: number;
  engineFault: string | undefined;
}

/** Why the code of this engine cannot be loaded; undefined: it can. */
type Diagnose = (engine: string) => Promise<string | undefined>;

export interface SpawningOptions {
  readonly hosts: HostsPort;
  readonly log: Log;
  readonly diagnose?: Diagnose;
  readonly clock?: () => number;
}

const most = 8;
/** One that others are to start is asked for again after this. */
const elsewhereMs = 10_000;
/** A process that is not a host by then never will be. */
const longestMs = 60_000;

export class Spawning {
  readonly #hosts: HostsPort;
  readonly #log: Log;
  readonly #clock: () => number;
  readonly #throttle: LogThrottle;
  readonly #asked = new Set<Asked>();
  /** Hosts that are what was asked for without knowing the process. */
  #credited = new Set<string>();
  readonly #faults = new Map<string, Fault>();
  readonly #diagnose: Diagnose;

  /** `clock` is one that only runs. */
  constructor({ hosts, log, diagnose = async () => undefined, clock = () => performance.now() }: SpawningOptions) {
    this.#hosts = hosts;
    this.#log = log;
    this.#diagnose = diagnose;
    this.#clock = clock;
    this.#throttle = new LogThrottle({ clock });
  }

  /** By engine. */
  faults(): ReadonlyMap<string, HostFault> {
    const now = this.#clock();
    return new Map(
      [...this.#faults].map(([engine, { how, times, untilMs, engineFault }]) => {
        return [engine, { how, times, isPausing: untilMs > now, engineFault }];
      }),
    );
  }

  /** Notes who is there by now. */
  see(hosts: readonly LaunchHost[]): void {
    const there = new Set(hosts.map(({ id }) => id));
    this.#credited = new Set([...this.#credited].filter((id) => there.has(id)));
    for (const asked of this.#asked) {
      const host = hosts.find((candidate) => this.#isAnswer(candidate, asked));
      const waitedMs = this.#clock() - asked.sinceMs;
      if (host !== undefined) this.#appeared(asked, host);
      else if (asked.pid === undefined && waitedMs > elsewhereMs) this.#asked.delete(asked);
      else if (asked.pid !== undefined && waitedMs > longestMs) this.#giveUp(asked, asked.pid);
    }
  }

  #isAnswer(host: LaunchHost, { engine, pid, at }: Asked): boolean {
    if (host.engine !== engine) return false;
    if (pid !== undefined) return host.pid === pid && host.machine === machine;
    return host.startedAt >= at && !this.#credited.has(host.id);
  }

  #appeared(asked: Asked, { id }: LaunchHost): void {
    this.#asked.delete(asked);
    if (asked.pid === undefined) this.#credited.add(id);
    this.#faults.delete(asked.engine);
  }

  #giveUp(asked: Asked, pid: number): void {
    this.#failed(asked, `not there after ${longestMs / 1_000} s`);
    this.#hosts.kill({ machine, pid });
  }

  #failed(asked: Asked, how: string): void {
    // one that has been there is missed as a host that is lost
    if (!this.#asked.delete(asked)) return;
    const { times = 0, engineFault } = this.#faults.get(asked.engine) ?? {};
    const untilMs = this.#clock() + retryDelayMs(times);
    const fault: Fault = { how, times: times + 1, untilMs, engineFault };
    this.#faults.set(asked.engine, fault);
    void this.#diagnose(asked.engine).then(
      (found) => (fault.engineFault = found),
      () => {},
    );
  }

  /** `missing`: by engine, how many more it takes, those on their way included. `now` by the server's clock. */
  ask(missing: ReadonlyMap<string, number>, now: Date): void {
    for (const [engine, count] of missing) {
      const onTheirWay = [...this.#asked].filter((asked) => asked.engine === engine).length;
      const fault = this.#faults.get(engine);
      // after a failure one is tried, and not all at once
      const wanted = Math.min(count, fault === undefined ? most : 1) - onTheirWay;
      if (fault === undefined || fault.untilMs <= this.#clock())
        for (let more = wanted; more > 0; more--) this.#spawn(engine, now);
    }
  }

  #spawn(engine: string, at: Date): void {
    if (this.#throttle.isDue(engine, 'wanted')) this.#log.info({ engine }, 'requesting one more host');
    const asked: Asked = { engine, at, sinceMs: this.#clock() };
    this.#asked.add(asked);
    asked.pid = this.#hosts.spawn(engine, (how) => this.#failed(asked, how));
    checkpoint('turn.spawned');
  }
}
