/**
 * The host as a child process: started, started again when it ends unasked, ended with us. It loads while the database
 * starts, and is told through its channel when and where that is ready. Through the same channel it hears that we are
 * gone, even by kill -9, and ends by itself; its log goes to our standard error, not through us.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import type { Log } from '../kernel/log.ts';
import { loop, pause, type Service } from '../kernel/service.ts';

export interface HostProcessOptions {
  readonly main: string;
  readonly home: string;
  readonly log: Log;
  /** Aborts when all is to end: a host that goes then, by the same Ctrl-C perhaps, is not missed. */
  readonly ending: AbortSignal;
}

export interface HostProcess extends Service {
  /** The control database is there, and migrated. */
  readonly tell: (databaseUrl: string) => void;
}

/** What a host under `up` is told. */
export interface HostOrder {
  readonly databaseUrl: string;
}

const killAfterMs = 4_000;
const stableMs = 10_000;

export function hostProcess(options: HostProcessOptions): HostProcess {
  let tell: (order: HostOrder) => void = () => {};
  const order = new Promise<HostOrder>((resolve) => {
    tell = resolve;
  });
  const running = loop(
    'host process',
    (signal) => keepRunning(options, order, signal),
    (error) => options.log.error({ err: error }, 'the host is not watched any more'),
  );
  return { ...running, tell: (databaseUrl) => tell({ databaseUrl }) };
}

async function keepRunning(options: HostProcessOptions, order: Promise<HostOrder>, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const startedAt = performance.now();
    const code = await runOnce(options, order, signal);
    if (signal.aborted || options.ending.aborted) return;
    failures = performance.now() - startedAt > stableMs ? 0 : failures + 1;
    options.log.error({ code }, 'the host ended unasked and is started again');
    await pause(delayMs(reconnect, failures), signal);
  }
}

async function runOnce(
  options: HostProcessOptions,
  order: Promise<HostOrder>,
  signal: AbortSignal,
): Promise<number | string | null> {
  const child = spawn(process.execPath, [options.main, 'host'], {
    env: { ...process.env, MILLRACE_HOME: options.home },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exit = new Promise<number | string | null>((resolve) => {
    child.once('exit', (code, killedBy) => resolve(killedBy ?? code));
    child.once('error', (error) => resolve(error.message));
  });
  void order.then((told) => child.connected && child.send(told));
  const onAbort = (): void => end(child);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const outcome = await exit;
  signal.removeEventListener('abort', onAbort);
  return outcome;
}

function end(child: ChildProcess): void {
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), killAfterMs).unref();
}
