import type timers from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { silent } from './log.ts';
import { warnThrottled } from './log-throttle.ts';
import {
  all,
  deadlineIn,
  endingEarlier,
  every,
  growingTo,
  leftUntil,
  loop,
  pause,
  type Service,
  together,
} from './service.ts';

/** All requested pauses. `forEver`: a pause lasts until it is aborted. */
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

/** A service that records the calls of its methods. */
function noted(name: string, notes: string[], fault: { start?: boolean; stop?: boolean } = {}): Service {
  return {
    name,
    async start() {
      if (fault.start) throw new Error(`${name} refuses`);
      notes.push(`start ${name}`);
    },
    quiet: () => void notes.push(`quiet ${name}`),
    async stop() {
      notes.push(`stop ${name}`);
      if (fault.stop) throw new Error(`${name} will not stop`);
    },
  };
}

describe('loop', () => {
  it('a loop that is started twice and stopped twice runs once', async () => {
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

  it('a loop reports an error, unless stopping caused it', async () => {
    const faults: unknown[] = [];
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
    expect(faults).toEqual([]);
  });

  it('a loop repeats a failed pass and works afterwards', async () => {
    const faults: unknown[] = [];
    let passes = 0;
    let work = nothing;
    const worked = new Promise<void>((resolve) => (work = resolve));
    const service = loop(
      'stumbling',
      async (signal) => {
        if (++passes < 3) throw new Error('not yet');
        work();
        await untilAborted(signal);
      },
      (error) => faults.push(error),
    );
    await service.start();
    await worked;
    await service.stop();
    expect(faults).toEqual([new Error('not yet'), new Error('not yet')]);
  });

  it('a loop whose pass always throws pauses between passes, and logs once', async () => {
    pauses.asked.length = 0;
    const logged: unknown[] = [];
    let passes = 0;
    let enough = nothing;
    const tenth = new Promise<void>((resolve) => (enough = resolve));
    const service = loop(
      'broken',
      async () => {
        if (++passes === 10) enough();
        throw new Error('for ever');
      },
      warnThrottled({ ...silent, warn: (fields: unknown) => void logged.push(fields) }, 'it failed'),
      growingTo(4),
    );
    await service.start();
    await tenth;
    await service.stop();
    expect(pauses.asked.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => 4));
    expect(logged).toEqual([{ err: new Error('for ever') }]);
  });

  it('a loop continues if its error handler throws', async () => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
    let passes = 0;
    let work = nothing;
    const worked = new Promise<void>((resolve) => (work = resolve));
    const service = loop(
      'unlucky',
      async (signal) => {
        if (++passes === 1) throw new Error('broken');
        work();
        await untilAborted(signal);
      },
      () => {
        throw new Error('no log either');
      },
    );
    await service.start();
    await worked;
    await service.stop();
    expect((await warned).message).toContain('unlucky');
  });

  it('a quiet loop begins no further pass', async () => {
    let passes = 0;
    let begin = nothing;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const service = loop(
      'quiet',
      async (signal) => {
        passes++;
        begin();
        await untilAborted(signal);
      },
      nothing,
    );
    await service.start();
    await begun;
    service.quiet();
    await service.stop();
    expect(passes).toBe(1);
  });

  it('a loop that was never started can be stopped', async () => {
    await loop('never', untilAborted, nothing).stop();
  });
});

describe('every', () => {
  it('an interval continues after a failed pass', async () => {
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

  it('stopping an interval waits for the pass under way', async () => {
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

describe('loop with failing passes', () => {
  it('pauses grow while passes fail, and are short again after a success', async () => {
    pauses.asked.length = 0;
    const startedMs = performance.now();
    let pass = 0;
    let done = nothing;
    const sixth = new Promise<void>((resolve) => (done = resolve));
    const service = loop(
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

  it('a loop stops at once during a pause', async () => {
    pauses.forEver = true;
    try {
      let markFailed = nothing;
      const failed = new Promise<void>((resolve) => (markFailed = resolve));
      const service = loop('failing', () => Promise.reject(new Error('always')), markFailed);
      await service.start();
      await failed;
      await service.stop();
    } finally {
      pauses.forEver = false;
    }
  });
});

describe('all and together', () => {
  it('services start in order and stop in reverse order, once each, even if called twice', async () => {
    const notes: string[] = [];
    const both = all('both', [noted('a', notes), noted('b', notes)]);
    await Promise.all([both.start(), both.start()]);
    await both.start();
    await both.stop();
    await both.stop();
    expect(notes).toEqual(['start a', 'start b', 'quiet a', 'quiet b', 'stop b', 'stop a']);
  });

  it('started services are stopped if one fails to start, and the error names it', async () => {
    const notes: string[] = [];
    const three = all('three', [noted('a', notes), noted('b', notes), noted('c', notes, { start: true })]);
    await expect(three.start()).rejects.toThrow('c did not start');
    expect(notes).toEqual(['start a', 'start b', 'quiet a', 'quiet b', 'stop b', 'stop a']);
  });

  it('services can be started again after one failed to start', async () => {
    const notes: string[] = [];
    const fault = { start: true };
    const two = all('two', [noted('a', notes), noted('b', notes, fault)]);
    await expect(two.start()).rejects.toThrow('b did not start');
    fault.start = false;
    await two.start();
    expect(notes).toEqual(['start a', 'quiet a', 'stop a', 'start a', 'start b']);
  });

  it('all services are stopped even if one fails to stop', async () => {
    const notes: string[] = [];
    const three = all('three', [noted('a', notes), noted('b', notes, { stop: true }), noted('c', notes)]);
    await three.start();
    await expect(three.stop()).rejects.toThrow('b will not stop');
    expect(notes.slice(3)).toEqual(['quiet a', 'quiet b', 'quiet c', 'stop c', 'stop b', 'stop a']);
  });

  it('a stop during the start leaves no service running', async () => {
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

  /** A service that never stops and records its deadline. */
  const stuck = (name: string, deadlines: (number | undefined)[]): Service => ({
    name,
    start: async () => {},
    stop: (deadlineMs) => {
      deadlines.push(deadlineMs);
      return new Promise(() => {});
    },
  });

  it('services that miss the deadline are abandoned and named by their path, and the others are stopped', async () => {
    const notes: string[] = [];
    const deadlines: (number | undefined)[] = [];
    const inner = together('inner', [stuck('b', deadlines), stuck('c', deadlines)]);
    const outer = all('outer', [noted('a', notes), inner]);
    await outer.start();
    const deadlineMs = deadlineIn(150);
    await expect(outer.stop(deadlineMs)).rejects.toMatchObject({
      sentences: ['inner/b did not stop in time and is abandoned', 'inner/c did not stop in time and is abandoned'],
    });
    expect(notes.at(-1)).toBe('stop a');
    // each inner deadline is earlier than the outer one
    expect(deadlines).toHaveLength(2);
    for (const own of deadlines) expect(own).toBeLessThan(deadlineMs - 30);
  });

  it('endingEarlier moves the deadline, to leave time for other services', async () => {
    const deadlines: (number | undefined)[] = [];
    const service: Service = {
      name: 'quick',
      start: async () => {},
      stop: async (deadlineMs) => void deadlines.push(deadlineMs),
    };
    await endingEarlier(1_000, service).stop(5_000);
    await endingEarlier(1_000, service).stop();
    expect(deadlines).toEqual([4_000, Number.POSITIVE_INFINITY]);
  });

  it('services of together stop at the same time', async () => {
    let stopping = 0;
    let both = nothing;
    const met = new Promise<void>((resolve) => (both = resolve));
    const meeting = (name: string): Service => ({
      name,
      start: async () => {},
      async stop() {
        if (++stopping === 2) both();
        await met;
      },
    });
    const pair = together('pair', [meeting('a'), meeting('b')]);
    await pair.start();
    await pair.stop();
    expect(stopping).toBe(2);
  });

  it('a service of an older build, without quiet and deadline, works as a part', async () => {
    const notes: string[] = [];
    const older = { name: 'old', start: async () => {}, stop: async () => void notes.push('stopped') };
    const service = all('new', [older]);
    await service.start();
    service.quiet();
    await service.stop(deadlineIn(1_000));
    expect(notes).toEqual(['stopped']);
    expect(leftUntil(0)).toBe(0);
  });
});
