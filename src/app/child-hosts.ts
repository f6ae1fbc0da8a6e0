/**
 * Hosts as child processes of `up`, which end with it. The first one, of the release's own engine, is started before the launcher
 * requests it, so that it loads while the database starts. Through their channel, hosts receive the address of the database once
 * it is ready, and notice when `up` has ended, even by kill -9.
 */
import type { ChildProcess } from 'node:child_process';
import { leftUntil, type Service } from '../kernel/service.ts';
import type { HostProcess, HostsPort } from '../launcher/hosts/spawning.ts';
import { type HostOrder, registered } from './host-order.ts';
import {
  fateOf,
  type HostProcessOptions,
  killHost,
  notifyEnd,
  type OnEnd,
  type OnExit,
  startHost,
  tryToStart,
  watch,
} from './host-processes.ts';

export interface ChildHostOptions extends HostProcessOptions {
  readonly firstVersion: string;
  /** Aborts when `up` ends. A host that ends then, perhaps by the same signal, is not logged as an error. */
  readonly ending: AbortSignal;
}

/** A host that has not ended this long after SIGTERM, or shortly before the deadline, is killed. */
const killAfterMs = 4_000;
const killBeforeDeadlineMs = 100;
/** The launcher has noticed a registered host by then. */
const noticedMs = 3_000;

export class ChildHosts implements HostsPort, Service {
  readonly name = 'hosts';
  readonly #options: ChildHostOptions;
  readonly #children = new Set<ChildProcess>();
  #ready: { readonly order: HostOrder; readonly onExit: OnExit } | undefined;
  #spare: ChildProcess | undefined;
  #isStarted = false;
  #isQuiet = false;

  constructor(options: ChildHostOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const { firstVersion, log } = this.#options;
    this.#spare = tryToStart(log, firstVersion, () => this.#begin(firstVersion));
  }

  /** Starts no more hosts. */
  quiet(): void {
    this.#isQuiet = true;
  }

  async stop(deadlineMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.quiet();
    const killMs = Math.min(killAfterMs, leftUntil(deadlineMs - killBeforeDeadlineMs));
    await Promise.all(Array.from(this.#children, (child) => endChild(child, killMs)));
  }

  spawn(version: string, onEnd: OnEnd): number | undefined {
    if (this.#isEnding()) return undefined;
    const { firstVersion, log } = this.#options;
    const ready = version === firstVersion ? this.#spare : undefined;
    if (ready === undefined) return tryToStart(log, version, () => this.#begin(version), onEnd)?.pid;
    this.#spare = undefined;
    notifyEnd(ready, onEnd);
    return ready.pid;
  }

  kill(host: HostProcess): void {
    void killHost(host, this.#options.log);
  }

  fate(host: HostProcess): string | undefined {
    return fateOf(host);
  }

  /** Sends hosts their order. Called once the control database is migrated. */
  sendOrder(order: HostOrder, onExit: OnExit): void {
    this.#ready = { order, onExit };
    for (const child of this.#children) sendOrder(child, order);
  }

  #isEnding(): boolean {
    return this.#isQuiet || this.#options.ending.aborted;
  }

  #begin(version: string): ChildProcess {
    const child = startHost(this.#options, version, 'child');
    this.#children.add(child);
    const onExit = (pid: number): void => this.#ready?.onExit(pid);
    watch(child, { ...this.#options, version, onExit, isMissed: () => !this.#isEnding() });
    const forget = (): void => {
      this.#children.delete(child);
      this.#takeSpare(child);
    };
    child.once('exit', forget);
    child.once('error', () => child.pid === undefined && forget());
    child.on('message', (message) => {
      // a launcher that requests a host now may have listed the hosts before this one registered
      if (message === registered) setTimeout(() => this.#takeSpare(child), noticedMs).unref();
    });
    if (this.#ready !== undefined) sendOrder(child, this.#ready.order);
    return child;
  }

  #takeSpare(child: ChildProcess): void {
    if (this.#spare === child) this.#spare = undefined;
  }
}

/** A child that has ended meanwhile is noticed by its exit. */
export function sendOrder(child: ChildProcess, order: HostOrder): void {
  if (child.connected) child.send(order, () => {});
}

/** Ends a child process: first politely, then by SIGKILL. */
export async function endChild(child: ChildProcess, killMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const insist = setTimeout(() => child.kill('SIGKILL'), killMs);
  await gone;
  clearTimeout(insist);
}
