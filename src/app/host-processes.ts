/**
 * Hosts as processes: started when the launcher asks for one, ended when it has written one off. Their logs go to our
 * standard error, not through us.
 *
 * Under `up` they are children that end with it: through their channel they are told when and where the database is ready,
 * and hear that we are gone, even by kill -9. The first one loads while the database starts. Beside a `launcher` they are on
 * their own, in a session of their own: neither its end nor a signal to its group reaches them, and its successor adopts them.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Log } from '../kernel/log.ts';
import { blockedSignal } from '../kernel/process/loop-watchdog.ts';
import { machine } from '../kernel/process/machine.ts';
import { isProcessRunning, readProcessStat } from '../kernel/process/process-stat.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import type { Service } from '../kernel/service.ts';
import type { HostProcess, HostsPort } from '../launcher/hosts/spawning.ts';
import { hostMemory } from './host-memory.ts';
import { type HostOrder, registered } from './host-order.ts';

export interface HostProcessOptions {
  readonly main: string;
  readonly log: Log;
  /** What a host's heap may come to, in MiB. */
  readonly memoryMb: number;
  /** What differs from our own. */
  readonly env: Readonly<Record<string, string>>;
}

/** A process that is known to be gone need not be missed first. */
type OnExit = (pid: number) => void;

function start({ main, memoryMb, env }: HostProcessOptions, version: string, beside: 'child' | 'alone'): ChildProcess {
  const heap = `--max-old-space-size=${hostMemory(memoryMb).abortAtMb}`;
  return spawn(process.execPath, [heap, main, 'host', '--engine', version, '--on-demand'], {
    env: { ...process.env, ...env },
    stdio: beside === 'child' ? ['ignore', 'ignore', 'inherit', 'ipc'] : ['ignore', 'ignore', 'inherit'],
    detached: beside === 'alone',
  });
}

const notStarted = 'a host could not be started';

/** How processes that this one started have ended, by their number. The newest are remembered. */
class Ends {
  readonly #byPid = new Map<number, string>();

  note(pid: number, fate: string): void {
    this.#byPid.delete(pid);
    this.#byPid.set(pid, fate);
    const [oldest] = this.#byPid.keys();
    if (this.#byPid.size > mostEnds && oldest !== undefined) this.#byPid.delete(oldest);
  }

  of(pid: number): string | undefined {
    return this.#byPid.get(pid);
  }
}

const mostEnds = 1_000;
const ends = new Ends();

/** Node aborts a process at the limit of its heap. */
const aborts = new Set<unknown>(['SIGABRT', 'SIGTRAP', 133, 134]);

function formatFate(code: number | null, killedBy: NodeJS.Signals | null, memoryMb: number): string {
  if (aborts.has(killedBy ?? code)) return `ran out of memory (heap limit ${hostMemory(memoryMb).abortAtMb} MiB)`;
  if (killedBy === blockedSignal) return 'was ended because one of its schedulers blocked it';
  if (killedBy === 'SIGKILL') return 'was killed (SIGKILL), by a person or by the system for lack of memory';
  return killedBy === null ? `exited with code ${code}` : `was killed (${killedBy})`;
}

/** How a host of this machine has ended. Undefined while a process has its number, which may be another process by now. */
function fateOf({ machine: where, pid }: HostProcess): string | undefined {
  if (where !== machine || pid === process.pid || isProcessRunning(pid)) return undefined;
  return ends.of(pid) ?? 'is gone: there is no such process any more';
}

function watch(
  child: ChildProcess,
  { version, memoryMb, log }: { readonly version: string; readonly memoryMb: number; readonly log: Log },
  onExit: OnExit,
  missed = (): boolean => true,
): void {
  // for all its life: one that cannot be started says so twice, and unheard it would end us
  child.on('error', (error) => {
    if (child.pid === undefined) log.error({ err: error, engine: version }, notStarted);
    else log.debug({ err: error, host: child.pid }, 'a host could not be spoken to');
  });
  child.once('exit', (code, killedBy) => {
    const fields = { host: child.pid, engine: version, code: killedBy ?? code };
    if (code === 0 || !missed()) log.debug(fields, 'a host has ended');
    else log.error(fields, 'a host has ended unasked');
    if (child.pid === undefined) return;
    ends.note(child.pid, formatFate(code, killedBy, memoryMb));
    onExit(child.pid);
  });
}

type OnEnd = (how: string) => void;

function tellEnd(child: ChildProcess, onEnd: OnEnd): void {
  child.once('exit', (code, killedBy) => onEnd(killedBy ?? `exit ${code}`));
  child.once('error', (error) => child.pid === undefined && onEnd(error.message));
}

/** Some faults of the system, such as too little memory, are thrown at once and not told as an event. */
function orTold(
  log: Log,
  version: string,
  work: () => ChildProcess,
  onEnd: OnEnd = () => {},
): ChildProcess | undefined {
  try {
    const child = work();
    tellEnd(child, onEnd);
    return child;
  } catch (error) {
    log.error({ err: error, engine: version }, notStarted);
    onEnd(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

/** Hosts that outlive us. */
export function detachedHosts(options: HostProcessOptions, onExit: OnExit): HostsPort {
  const begin = (version: string): ChildProcess => {
    const child = start(options, version, 'alone');
    watch(child, { ...options, version }, onExit);
    child.unref();
    return child;
  };
  return {
    spawn: (version, onEnd) => orTold(options.log, version, () => begin(version), onEnd)?.pid,
    kill: (host) => void killHost(host, options.log),
    fate: fateOf,
  };
}

/** Somebody else starts them. */
export function hostsElsewhere({ log }: HostProcessOptions): HostsPort {
  const throttle = new LogThrottle();
  return {
    spawn(version) {
      // it is asked for again and again until somebody does
      if (throttle.isDue(version, 'wanted'))
        log.warn({ engine: version }, 'one more host is wanted: `millrace host --engine` with this version');
      return undefined;
    },
    kill: (host) => void killHost(host, log),
    fate: fateOf,
  };
}

export interface ChildHosts extends HostsPort, Service {
  /** The control database is there, and migrated. */
  tell(order: HostOrder, onExit: OnExit): void;
}

export interface ChildHostOptions extends HostProcessOptions {
  readonly firstVersion: string;
  /** Aborts when all is to end: a host that goes then, by the same signal perhaps, is not missed. */
  readonly ending: AbortSignal;
}

const killAfterMs = 4_000;
/** A host that is registered is seen by the launcher by then. */
const noticedMs = 3_000;

/** Hosts that end with us. The first, of the release's own engine, is there before anybody asks for it. */
export function childHosts(options: ChildHostOptions): ChildHosts {
  const { firstVersion } = options;
  const children = new Set<ChildProcess>();
  let told: { readonly order: HostOrder; readonly onExit: OnExit } | undefined;
  let spare: ChildProcess | undefined;
  let stopping = false;
  const isEnding = (): boolean => stopping || options.ending.aborted;
  const begin = (version: string): ChildProcess => {
    const child = start(options, version, 'child');
    children.add(child);
    const onExit = (pid: number): void => told?.onExit(pid);
    watch(child, { ...options, version }, onExit, () => !isEnding());
    const notSpare = (): void => {
      if (spare === child) spare = undefined;
    };
    const gone = (): void => {
      children.delete(child);
      notSpare();
    };
    child.once('exit', gone);
    child.once('error', () => child.pid === undefined && gone());
    child.on('message', (word) => {
      // a launcher that asks now may have looked for hosts a moment before
      if (word === registered) setTimeout(notSpare, noticedMs).unref();
    });
    if (told !== undefined) send(child, told.order);
    return child;
  };
  return {
    name: 'hosts',
    async start() {
      spare = orTold(options.log, firstVersion, () => begin(firstVersion));
    },
    async stop() {
      stopping = true;
      await Promise.all([...children].map(end));
    },
    spawn(version, onEnd) {
      if (isEnding()) return undefined;
      const ready = version === firstVersion ? spare : undefined;
      if (ready === undefined) return orTold(options.log, version, () => begin(version), onEnd)?.pid;
      spare = undefined;
      tellEnd(ready, onEnd);
      return ready.pid;
    },
    kill: (host) => void killHost(host, options.log),
    fate: fateOf,
    tell(order, onExit) {
      told = { order, onExit };
      for (const child of children) send(child, order);
    },
  };
}

/** One that has gone meanwhile is told of by its exit. */
function send(child: ChildProcess, order: HostOrder): void {
  if (child.connected) child.send(order, () => {});
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const insist = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  await gone;
  clearTimeout(insist);
}

/**
 * By its pid, if that is (still) the host's: the number may have been given to another process by now. After the restart of
 * a container to another host, even: the system gives it the numbers of the one before.
 */
async function killHost({ machine: where, pid, ageMs = 0 }: HostProcess, log: Log): Promise<void> {
  if (where !== machine || pid === process.pid) return;
  if (!isHost(await commandOf(pid)) || (ageOf(pid) ?? ageMs) < ageMs - inaccuracyMs) return;
  try {
    process.kill(pid, 'SIGKILL');
    log.warn({ host: pid }, 'a host that did not answer was killed');
  } catch (error) {
    log.debug({ err: error, host: pid }, 'a host could not be killed');
  }
}

/** Of the clocks that the two ages are taken by. */
const inaccuracyMs = 1_000;

/** In milliseconds; undefined where the system does not say. Computed from our own age: a container's uptime varies. */
function ageOf(pid: number): number | undefined {
  const [own, other] = [readProcessStat('self'), readProcessStat(pid)];
  if (own === undefined || other === undefined) return undefined;
  return process.uptime() * 1_000 + own.startedMs - other.startedMs;
}

function isHost(command: readonly string[]): boolean {
  const at = command.indexOf('host');
  return at > 0 && command.slice(0, at).some((part) => /(^|\/)(main\.js|millrace)$/.test(part));
}

/** Empty where there is no such process. */
async function commandOf(pid: number): Promise<string[]> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (line !== undefined) return line.split('\0');
  if (process.platform === 'linux') return [];
  const listed = await promisify(execFile)('ps', ['-ww', '-o', 'args=', '-p', String(pid)]).catch(() => undefined);
  return listed?.stdout.trim().split(/\s+/) ?? [];
}
