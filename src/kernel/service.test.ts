import type timers from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { all, every, loop, pause, type Service, steady } from './service.ts';

/** Every pause that is asked for, and whether they last for ever: then only an abort ends one. */
const pauses = vi.hoisted(() => ({ asked: [] as number[], forEver: false }));
vi.mock('node:timers/promises', async (original) => {
  const { setTimeout: sleep } = await original<typeof timers>();
  return {
    setTimeout: (ms: number, ...rest: [value?: unknown, options?: object]) => {
      pauses.asked.push(ms);
      return sleep(pauses.forEver ? 2 ** 31 - 1 : ms, ...rest);
    },
  };
});

const nothing = (): void => {};

async function untilAborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** A service that writes down what is done to it. */
function noted(name: string, notes: string[], fault: { start?: boolean; stop?: boolean } = {}): Service {
  return {
    name,
    async start() {
      if (fault.start) throw new Error(`${name} refuses`);
      notes.push(`start ${name}`);
    },
    async stop() {
      notes.push(`stop ${name}`);
      if (fault.stop) throw new Error(`${name} will not stop`);
    },
  };
}

describe('a loop', () => {
  it('may be started twice and stopped twice, and runs once', async () => {
    let running = 0;
    let runs = 0;
    const run = async (signal: AbortSignal): Promise<void> => {
      running++;
      runs++;
      await untilAborted(signal);
      running--;
    };
    const service = loop('twice', run, nothing);
    await Promise.all([service.start(), service.start()]);
    await service.start();
    expect([running, runs]).toEqual([1, 1]);
    await Promise.all([service.stop(), service.stop()]);
    await service.stop();
    expect([running, runs]).toEqual([0, 1]);
    await service.start();
    expect([running, runs]).toEqual([1, 2]);
    await service.stop();
  });

  it('tells of a failure, but not of one that stopping caused', async () => {
    const faults: unknown[] = [];
    const failing = loop(
      'failing',
      () => Promise.reject(new Error('broken')),
      (error) => faults.push(error),
    );
    await failing.start();
    await failing.stop();
    expect(faults).toEqual([new Error('broken')]);
    const ending = loop(
      'ending',
      async (signal) => {
        await untilAborted(signal);
        throw new Error('because it was stopped');
      },
      (error) => faults.push(error),
    );
    await ending.start();
    await ending.stop();
    expect(faults).toHaveLength(1);
  });

  it('that was stopped without ever having been started is stopped', async () => {
    await loop('never', untilAborted, nothing).stop();
  });
});

describe('an interval', () => {
  it('goes on after a pass that failed', async () => {
    const faults: unknown[] = [];
    let passes = 0;
    const third = new Promise<void>((resolve) => {
      const pass = async (): Promise<void> => {
        if (++passes === 3) resolve();
        throw new Error(`pass ${passes}`);
      };
      const service = every(1, 'failing', pass, (error) => faults.push(error));
      void service.start().then(async () => {
        await third;
        await service.stop();
      });
    });
    await third;
    expect(faults.length).toBeGreaterThanOrEqual(2);
  });

  it('finishes the pass under way before it is stopped', async () => {
    let finished = false;
    const service = every(
      1,
      'slow',
      async () => {
        await pause(20);
        finished = true;
      },
      nothing,
    );
    await service.start();
    await service.stop();
    expect(finished).toBe(true);
  });
});

describe('a steady service', () => {
  it('backs off while its pass fails, and starts over small once one has succeeded', async () => {
    pauses.asked.length = 0;
    const startedMs = performance.now();
    let pass = 0;
    let done = nothing;
    const sixth = new Promise<void>((resolve) => (done = resolve));
    const service = steady(
      'stumbling',
      async () => {
        if (++pass === 6) done();
        if (pass !== 4) throw new Error('again');
      },
      nothing,
    );
    await service.start();
    await sixth;
    // after failures 1, 2 and 3; none after the success; then small again
    expect(pauses.asked.slice(0, 4)).toEqual([50, 100, 200, 50]);
    expect(performance.now() - startedMs).toBeGreaterThan(390);
    await service.stop();
  });

  it('stops at once while it backs off', async () => {
    pauses.forEver = true;
    try {
      let tell = nothing;
      const failed = new Promise<void>((resolve) => (tell = resolve));
      const service = steady('failing', () => Promise.reject(new Error('always')), tell);
      await service.start();
      await failed;
      await service.stop();
    } finally {
      pauses.forEver = false;
    }
  });
});

describe('several services', () => {
  it('start in order and stop in reverse, once each, though asked twice', async () => {
    const notes: string[] = [];
    const both = all('both', [noted('a', notes), noted('b', notes)]);
    await Promise.all([both.start(), both.start()]);
    await both.start();
    await both.stop();
    await both.stop();
    expect(notes).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('are stopped again when one of them refuses, whose name is told', async () => {
    const notes: string[] = [];
    const three = all('three', [noted('a', notes), noted('b', notes), noted('c', notes, { start: true })]);
    await expect(three.start()).rejects.toThrow('c did not start');
    expect(notes).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('can be started again after one of them had refused', async () => {
    const notes: string[] = [];
    const fault = { start: true };
    const two = all('two', [noted('a', notes), noted('b', notes, fault)]);
    await expect(two.start()).rejects.toThrow('b did not start');
    fault.start = false;
    await two.start();
    expect(notes).toEqual(['start a', 'stop a', 'start a', 'start b']);
  });

  it('are all stopped, though one of them fails to', async () => {
    const notes: string[] = [];
    const three = all('three', [noted('a', notes), noted('b', notes, { stop: true }), noted('c', notes)]);
    await three.start();
    await expect(three.stop()).rejects.toThrow('b will not stop');
    expect(notes.slice(3)).toEqual(['stop c', 'stop b', 'stop a']);
  });

  it('leave nothing running when they are stopped while they start', async () => {
    const notes: string[] = [];
    const slow: Service = {
      ...noted('slow', notes),
      async start() {
        await pause(20);
        notes.push('start slow');
      },
    };
    const three = all('three', [noted('a', notes), slow, noted('c', notes)]);
    const starting = three.start();
    await three.stop();
    await starting.catch(nothing);
    const count = (what: string): number => notes.filter((note) => note.startsWith(what)).length;
    expect(count('start')).toBe(count('stop'));
  });
});
