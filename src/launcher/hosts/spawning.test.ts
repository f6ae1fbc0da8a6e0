import { describe, expect, it } from 'vitest';
import { type Log, silent } from '../../kernel/log.ts';
import { machine } from '../../kernel/process/machine.ts';
import type { LaunchHost } from '../launch-queries.ts';
import { Spawning } from './spawning.ts';

const now = new Date('2026-06-01T00:00:00Z');
const host = (pid: number, more: Partial<LaunchHost> = {}): LaunchHost => ({
  id: `host ${pid}`,
  machine,
  pid,
  engine: '1',
  leaving: false,
  onDemand: true,
  unsaid: [],
  startedAt: new Date(now.getTime() + 1_000),
  beatMs: now.getTime(),
  ...more,
});

/** `pid`: of the first one; undefined: others start them. */
function scene(pid?: number, engineFault?: string) {
  let next = pid;
  const ends: ((how: string) => void)[] = [];
  const told: string[] = [];
  const info = (_: object, text: string): void => {
    told.push(text);
  };
  const killed: number[] = [];
  let clock = 0;
  const later = (ms: number): void => {
    clock += ms;
  };
  const spawning = new Spawning({
    hosts: {
      spawn(_, onEnd) {
        ends.push(onEnd);
        return next === undefined ? undefined : next++;
      },
      kill: (one) => killed.push(one.pid),
      fate: () => undefined,
    },
    log: { ...silent, info: info as Log['info'] },
    clock: () => clock,
    diagnose: async () => engineFault,
  });
  const ask = (count: number, engine = '1'): number => {
    const before = ends.length;
    spawning.ask(new Map([[engine, count]]), now);
    return ends.length - before;
  };
  return { spawning, ends, killed, ask, later, told };
}

describe('hosts that are asked for', () => {
  it('are not asked for again while they are on their way, however long they load', () => {
    const { spawning, ask, killed, later } = scene(10);
    expect(ask(2)).toBe(2);
    later(59_000);
    spawning.see([host(10)]);
    expect([ask(1), ask(2)]).toEqual([0, 1]);
    later(2_000);
    spawning.see([host(10)]);
    expect(killed, 'one that hangs').toEqual([11]);
    expect(spawning.faults().get('1')).toEqual({
      how: 'not registered after 60 s',
      times: 1,
      isPausing: true,
    });
  });

  it('are known by their process: another of its number, engine or machine is not the one', () => {
    const { spawning, ask } = scene(10);
    ask(1);
    spawning.see([host(11), host(10, { engine: '2' }), host(10, { machine: 'another' })]);
    expect(ask(1)).toBe(0);
    spawning.see([host(10)]);
    expect(ask(1)).toBe(1);
  });

  it('and started by others are known by when they came, each for one that was asked for', () => {
    const { spawning, ask } = scene();
    expect(ask(2)).toBe(2);
    spawning.see([host(1), host(2, { startedAt: new Date(now.getTime() - 1) })]);
    spawning.see([host(1)]);
    expect([ask(1), ask(2)]).toEqual([0, 1]);
  });

  it('are eight at a time, of each engine', () => {
    const { ask } = scene(10);
    expect([ask(50), ask(50), ask(1, '2')]).toEqual([8, 0, 1]);
  });
});

describe('hosts that end before they are there', () => {
  it('are asked for one at a time after a growing pause, until one is there', () => {
    const { spawning, ends, ask, later } = scene(10);
    const end = (how: string): void => ends.at(-1)?.(how);
    const fault = () => spawning.faults().get('1');
    ask(1);
    end('exit 1');
    expect(fault()).toEqual({ how: 'exit 1', times: 1, isPausing: true });
    expect([ask(3), ask(1, '2')]).toEqual([0, 1]);
    later(1_000);
    expect(fault()).toMatchObject({ isPausing: false });
    expect(ask(3)).toBe(1);
    ends[2]?.('SIGKILL');
    expect(fault()).toMatchObject({ how: 'SIGKILL', times: 2 });
    // the pause is up to 30 % shorter than 2 s
    later(1_300);
    expect(ask(3)).toBe(0);
    later(700);
    expect(ask(3)).toBe(1);
    spawning.see([host(13)]);
    expect(fault()).toBeUndefined();
    expect(ask(3)).toBe(3);
  });

  it('are no longer these once they have been there', () => {
    const { spawning, ends, ask } = scene(10);
    ask(1);
    spawning.see([host(10)]);
    ends[0]?.('exit 1');
    expect(spawning.faults().size).toBe(0);
  });

  it('again and again, where others are to start them, are told of once a minute', () => {
    const { spawning, ask, later, told } = scene();
    for (let times = 0; times < 12; times++) {
      expect(ask(1)).toBe(1);
      later(10_001);
      spawning.see([]);
    }
    expect(told).toHaveLength(2);
  });
});
