/**
 * A host finds its engine before it registers: it is given tenants of that version at once, and would fail them all. One that
 * a launcher has started ends when it finds none, one that was started by hand waits for it.
 */
import { MillraceError } from '../errors.ts';
import type { Log } from '../kernel/log.ts';
import { pause } from '../kernel/service.ts';
import type { EngineSource } from '../loader/engines/engines.ts';

export interface EngineWait {
  /** It is looked for until it is there, or the signal aborts. */
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
  let told: string | undefined;
  while (!signal.aborted) {
    const found = await engines.find(version);
    if (found.ok) return;
    if (!waits) throw new MillraceError('no_engine', found.detail);
    if (told !== found.detail) log.warn({ engine: version, reason: found.detail }, 'the host waits for its engine');
    told = found.detail;
    await pause(everyMs, signal);
  }
}
