/**
 * Hosts as processes. They are started when the launcher requests one, and killed when the launcher has given one up. They
 * write their logs directly to this process's standard error.
 *
 * Under `up`, hosts are children that end with it (`child-hosts.ts`). Under a separate `launcher`, hosts run in a session of
 * their own: neither the end of the launcher nor a signal to its group reaches them, and the next launcher adopts them.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Log } from '../kernel/log.ts';
import { blockedSignal } from '../kernel/process/loop-watchdog.ts';
import { machine } from '../kernel/process/machine.ts';
import { isProcessRunning, readProcessStat } from '../kernel/process/process-stat.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import type { HostProcess, HostsPort } from '../launcher/hosts/spawning.ts';
import { hostMemory } from './host-memory.ts';

export interface HostProcessOptions {
  readonly main: string;
  readonly log: Log;
  /** The limit of a host's heap, in MiB. */
  readonly memoryMb: number;
  /** Variables that differ from those of this process. */
  readonly env: Readonly<Record<string, string>>;
}

/** Called when a host is known to have ended, so that the launcher need not wait for missing heartbeats. */
export type OnExit = (pid: number) => void;

export function startHost(
  { main, memoryMb, env }: HostProcessOptions,
  version: string,
  beside: 'child' | 'alone',
): ChildProcess {
  const heap = `--max-old-space-size=${hostMemory(memoryMb).abortAtMb}`;
  return spawn(process.execPath, [heap, main, 'host', '--engine', version, '--on-demand'], {
    env: { ...process.env, ...env },
    stdio: beside === 'child' ? ['ignore', 'ignore', 'inherit', 'ipc'] : ['ignore', 'ignore', 'inherit'],
    detached: beside === 'alone',
  });
}

const notStarted = 'host start failed';

/** How processes that this one started have ended, by pid. Only the newest `maxEnds` are kept. */
class Ends {
  readonly #byPid = new Map<number, string>();

  note(pid: number, fate: string): void {
    this.#byPid.delete(pid);
    this.#byPid.set(pid, fate);
    const [oldest] = this.#byPid.keys();
    if (this.#byPid.size > maxEnds && oldest !== undefined) this.#byPid.delete(oldest);
  }

  of(pid: number): string | undefined {
    return this.#byPid.get(pid);
  }
}

const maxEnds = 1_000;
const ends = new Ends();

/** Signals and exit codes of a process that Node aborts at its heap limit. */
const aborts = new Set<unknown>(['SIGABRT', 'SIGTRAP', 133, 134]);

function formatFate(code: number | null, killedBy: NodeJS.Signals | null, memoryMb: number): string {
  if (aborts.has(killedBy ?? code)) return `ran out of memory (heap limit ${hostMemory(memoryMb).abortAtMb} MiB)`;
  if (killedBy === blockedSignal) return 'was ended because one of its schedulers blocked it';
  if (killedBy === 'SIGKILL') return 'was killed (SIGKILL), by a person or by the system for lack of memory';
  return killedBy === null ? `exited with code ${code}` : `was killed (${killedBy})`;
}

/** How a host of this machine has ended. Undefined while a process has its pid, which may be another process by now. */
export function fateOf({ machine: where, pid }: HostProcess): string | undefined {
  if (where !== machine || pid === process.pid || isProcessRunning(pid)) return undefined;
  return ends.of(pid) ?? 'is gone: the process no longer exists';
}

interface Watching {
  readonly version: string;
  readonly memoryMb: number;
  readonly log: Log;
  readonly onExit: OnExit;
  /** Whether its end is an error; default: always. */
  readonly isMissed?: () => boolean;
}

export function watch(child: ChildProcess, { version, memoryMb, log, onExit, isMissed = () => true }: Watching): void {
  // for all its life: a child that cannot be started emits two errors, and one without a listener would end this process
  child.on('error', (error) => {
    if (child.pid === undefined) log.error({ err: error, engine: version }, notStarted);
    else log.debug({ err: error, host: child.pid }, 'sending to a host failed');
  });
  child.once('exit', (code, killedBy) => {
    const fields = { host: child.pid, engine: version, code: killedBy ?? code };
    if (code === 0 || !isMissed()) log.debug(fields, 'host ended');
    else log.error(fields, 'host ended unexpectedly');
    if (child.pid === undefined) return;
    ends.note(child.pid, formatFate(code, killedBy, memoryMb));
    onExit(child.pid);
  });
}

export type OnEnd = (how: string) => void;

export function notifyEnd(child: ChildProcess, onEnd: OnEnd): void {
  child.once('exit', (code, killedBy) => onEnd(killedBy ?? `exit ${code}`));
  child.once('error', (error) => child.pid === undefined && onEnd(error.message));
}

/** Some errors of the system, such as too little memory, are thrown instead of emitted as an event. Both are logged. */
export function tryToStart(
  log: Log,
  version: string,
  work: () => ChildProcess,
  onEnd: OnEnd = () => {},
): ChildProcess | undefined {
  try {
    const child = work();
    notifyEnd(child, onEnd);
    return child;
  } catch (error) {
    log.error({ err: error, engine: version }, notStarted);
    onEnd(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

/** Hosts that outlive this process. */
export function detachedHosts(options: HostProcessOptions, onExit: OnExit): HostsPort {
  const begin = (version: string): ChildProcess => {
    const child = startHost(options, version, 'alone');
    watch(child, { ...options, version, onExit });
    child.unref();
    return child;
  };
  return {
    spawn: (version, onEnd) => tryToStart(options.log, version, () => begin(version), onEnd)?.pid,
    kill: (host) => void killHost(host, options.log),
    fate: fateOf,
  };
}

/** Hosts that an operator starts; this process only logs that one is needed. */
export function hostsElsewhere({ log }: HostProcessOptions): HostsPort {
  const throttle = new LogThrottle();
  return {
    spawn(version) {
      // the launcher repeats the request until the host is started
      if (throttle.isDue(version, 'wanted'))
        log.warn({ engine: version }, 'another host is needed: start `millrace host --engine` with this version');
      return undefined;
    },
    kill: (host) => void killHost(host, log),
    fate: fateOf,
  };
}

/**
 * Kills a host by its pid, unless the pid belongs to another process by now. After the restart of a container it may even belong
 * to another host, because the system assigns the same numbers again.
 */
export async function killHost({ machine: where, pid, ageMs = 0 }: HostProcess, log: Log): Promise<void> {
  if (where !== machine || pid === process.pid) return;
  if (!isHost(await commandOf(pid)) || (ageOf(pid) ?? ageMs) < ageMs - inaccuracyMs) return;
  try {
    process.kill(pid, 'SIGKILL');
    log.warn({ host: pid }, 'unresponsive host killed');
  } catch (error) {
    log.debug({ err: error, host: pid }, 'killing a host failed');
  }
}

/** The maximum difference between the clocks of the two ages. */
const inaccuracyMs = 1_000;

/**
 * The age of a process in milliseconds; undefined: unknown. Computed from this process's age, because a container's uptime
 * varies.
 */
function ageOf(pid: number): number | undefined {
  const [own, other] = [readProcessStat('self'), readProcessStat(pid)];
  if (own === undefined || other === undefined) return undefined;
  return process.uptime() * 1_000 + own.startedMs - other.startedMs;
}

function isHost(command: readonly string[]): boolean {
  const at = command.indexOf('host');
  return at > 0 && command.slice(0, at).some((part) => /(^|\/)(main\.js|millrace)$/.test(part));
}

/** The command line of a process; empty: there is no such process. */
async function commandOf(pid: number): Promise<string[]> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (line !== undefined) return line.split('\0');
  if (process.platform === 'linux') return [];
  const listed = await promisify(execFile)('ps', ['-ww', '-o', 'args=', '-p', String(pid)]).catch(() => undefined);
  return listed?.stdout.trim().split(/\s+/) ?? [];
}
