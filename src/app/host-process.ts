/**
 * The host as a child process: started, started again when it ends unasked, ended with us. It hears through its channel
 * that we are gone, even by kill -9, and ends by itself; its log goes to our standard error, not through us.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import type { Log } from '../kernel/log.ts';
import { loop, pause, type Service } from '../kernel/service.ts';

export interface HostProcessOptions {
  readonly main: string;
  readonly home: string;
  readonly databaseUrl: string;
  readonly log: Log;
}

const killAfterMs = 4_000;
const stableMs = 10_000;

export function hostProcess(options: HostProcessOptions): Service {
  return loop(
    'host process',
    (signal) => keepRunning(options, signal),
    (error) => options.log.error({ err: error }, 'the host is not watched any more'),
  );
}

async function keepRunning(options: HostProcessOptions, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const startedAt = performance.now();
    const code = await runOnce(options, signal);
    if (signal.aborted) return;
    failures = performance.now() - startedAt > stableMs ? 0 : failures + 1;
    options.log.error({ code }, 'the host ended unasked and is started again');
    await pause(delayMs(reconnect, failures), signal);
  }
}

async function runOnce(options: HostProcessOptions, signal: AbortSignal): Promise<number | string | null> {
  const child = spawn(process.execPath, [options.main, 'host'], {
    env: { ...process.env, MILLRACE_HOME: options.home, MILLRACE_DATABASE_URL: options.databaseUrl },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exit = new Promise<number | string | null>((resolve) => {
    child.once('exit', (code, killedBy) => resolve(killedBy ?? code));
    child.once('error', (error) => resolve(error.message));
  });
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
