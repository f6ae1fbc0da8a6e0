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

/** Starts hosts, and ends those that were written off. No function waits or throws. */
export interface HostsPort {
  /**
   * Starts one more host of this engine version. Returns its process id; undefined: another program starts it, or no process
   * could be started. `onEnd` is called with the cause when the process ends, or could not be started.
   */
  spawn(engineVersion: string, onEnd: (how: string) => void): number | undefined;
  /** Ends a host that was written off, if it is a process of this machine. */
  kill(host: HostProcess): void;
  /** How a process of this machine has ended: "exited with code 1". Undefined: it lives, or is on another machine. */
  fate(host: HostProcess): string | undefined;
}

export interface HostProcess {
  readonly machine: string;
  readonly pid: number;
  /** The minimum age of the process. */
  readonly ageMs?: number;
}

export interface HostFault {
  /** How the last process ended, and how many ended in a row. */
  readonly how: string;
  readonly times: number;
  /** No host is requested now: the existing ones share the tenants. */
  readonly isPausing: boolean;
  /** Why the engine's code cannot be loaded; undefined: it can, or that is not known yet. */
  readonly engineFault: string | undefined;
}

interface Asked {
  readonly engine: string;
  /** The time of the request, by the server's clock and by a monotonic one. */
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

const maxAtOnce = 8;
/** A host that another program starts is requested again after this time. */
const elsewhereMs = 10_000;
/** A process that has not registered as a host by then is ended. */
const longestMs = 60_000;

export class Spawning {
  readonly #hosts: HostsPort;
  readonly #log: Log;
  readonly #clock: () => number;
  readonly #throttle: LogThrottle;
  readonly #asked = new Set<Asked>();
  /** Hosts that answered a request whose process id was not known. */
  #credited = new Set<string>();
  readonly #faults = new Map<string, Fault>();
  readonly #diagnose: Diagnose;

  /** `clock` is monotonic. */
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

  /** Matches the registered hosts with the requests. */
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
    this.#failed(asked, `not registered after ${longestMs / 1_000} s`);
    this.#hosts.kill({ machine, pid });
  }

  #failed(asked: Asked, how: string): void {
    // a process that had registered is handled as a lost host
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

  /** `missing`: number of hosts wanted by engine, including requested ones. `now` is by the server's clock. */
  ask(missing: ReadonlyMap<string, number>, now: Date): void {
    for (const [engine, count] of missing) {
      const onTheirWay = [...this.#asked].filter((asked) => asked.engine === engine).length;
      const fault = this.#faults.get(engine);
      // after a failure, one host at a time
      const wanted = Math.min(count, fault === undefined ? maxAtOnce : 1) - onTheirWay;
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
