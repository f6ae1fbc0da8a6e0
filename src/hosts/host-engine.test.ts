import { describe, expect, it } from 'vitest';
import { engine, engineVersion } from '../engine/engine.ts';
import { type Log, silent } from '../kernel/log.ts';
import type { FoundEngine } from '../loader/engines/engines.ts';
import { awaitEngine } from './host-engine.ts';

const none = (detail: string): FoundEngine => ({ ok: false, detail });

describe('host without its engine', () => {
  it('a host that a launcher has started ends without its engine', async () => {
    const wait = { waits: false, signal: new AbortController().signal, log: silent };
    const broken = { find: async () => none('it is broken') };
    await expect(awaitEngine(broken, '9.0.0', wait)).rejects.toMatchObject({
      code: 'no_engine',
      message: 'it is broken',
    });
    await awaitEngine({ find: async () => ({ ok: true, engine }) }, engineVersion, wait);
  });

  it('a host that was started by hand waits for its engine, and logs each reason once', async () => {
    const logged: unknown[] = [];
    const warn = ({ reason }: { reason: string }): void => void logged.push(reason);
    const log: Log = { ...silent, warn };
    const finds = [none('it is not here'), none('it is not here'), none('it is broken')];
    const engines = { find: async (): Promise<FoundEngine> => finds.shift() ?? { ok: true, engine } };
    await awaitEngine(engines, '9.0.0', { waits: true, signal: new AbortController().signal, log, everyMs: 1 });
    expect([finds.length, logged]).toEqual([0, ['it is not here', 'it is broken']]);
  });

  it('a waiting host stops waiting when its signal aborts', async () => {
    const over = new AbortController();
    setTimeout(() => over.abort(), 10);
    await awaitEngine({ find: async () => none('no') }, '9.0.0', { waits: true, signal: over.signal, log: silent });
    expect(over.signal.aborted).toBe(true);
  });
});
