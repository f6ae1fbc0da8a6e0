/**
 * Finds a host's engine before the host registers. A registered host gets tenants of its version at once; without the engine
 * it would fail them all. A host that a launcher has started ends if the engine is missing. A host that was started by hand
 * waits for it.
 */
import { MillraceError } from '../errors.ts';
import type { Log } from '../kernel/log.ts';
import { pause } from '../kernel/service.ts';
import type { EngineSource } from '../loader/engines/engines.ts';

export interface EngineWait {
  /** Retry until the engine is found or the signal aborts. */
  readonly waits: boolean;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly everyMs?: number;
}

const usualEveryMs = 5_000;

export async function awaitEngine(
  engines: EngineSource,
  version: string,
  { waits, signal, log, everyMs = usualEveryMs }: EngineWait,
): Promise<void> {
  let lastReason: string | undefined;
  while (!signal.aborted) {
    const found = await engines.find(version);
    if (found.ok) return;
    if (!waits) throw new MillraceError('no_engine', found.detail);
    if (lastReason !== found.detail)
      log.warn({ engine: version, reason: found.detail }, 'engine not found, host waits');
    lastReason = found.detail;
    await pause(everyMs, signal);
  }
}
