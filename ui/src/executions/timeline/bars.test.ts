import { describe, expect, it } from 'vitest';
import { barsOf, type Moment } from './bars.ts';

const second = (n: number): number => Date.UTC(2026, 0, 1) + n * 1_000;

type Change = readonly [id: string, from: string | null, to: string | null, attempt?: number];

const moment = (rev: number, seconds: number, ...changes: readonly Change[]): Moment => ({
  rev,
  at: new Date(second(seconds)).toISOString(),
  changes: {
    nodes: changes.map(([id, from, to, attempt = 1]) => ({
      id,
      path: id.split('-')[0] ?? '',
      verb: 'task',
      from,
      to,
      attempt,
    })),
  },
});

/** Each bar as its node and its stretches in seconds. */
const drawn = (moments: readonly Moment[], endsAt = 100): Record<string, string[]> =>
  Object.fromEntries(
    barsOf(moments, second(endsAt)).map(({ path, bars }) => [
      path,
      bars.map(({ node, stretches }) => {
        const parts = stretches.map(
          ({ state, from, to }) => `${state} ${(from - second(0)) / 1_000}..${(to - second(0)) / 1_000}`,
        );
        return `${node}: ${parts.join(', ')}`;
      }),
    ]),
  );

describe('bars of the timeline of an execution', () => {
  it('a visit is a bar from its first commit to its last', () => {
    const moments = [
      moment(1, 0, ['a-1', null, 'run']),
      moment(2, 5, ['a-1', 'run', null], ['b-2', null, 'run']),
      moment(3, 9, ['b-2', 'run', null]),
    ];
    expect(drawn(moments)).toEqual({ a: ['a-1: done 0..5'], b: ['b-2: done 5..9'] });
  });

  it('a bar is cut where the phase changes', () => {
    const moments = [
      moment(1, 0, ['a-1', null, 'run']),
      moment(2, 3, ['a-1', 'run', 'backoff']),
      moment(3, 5, ['a-1', 'backoff', 'run', 2]),
      moment(4, 6, ['a-1', 'run', 'incident', 2]),
    ];
    expect(drawn(moments, 8)).toEqual({ a: ['a-1: running 0..3, retry 3..5, running 5..6, incident 6..8'] });
    expect(barsOf(moments, second(8))[0]?.bars[0]).toMatchObject({ attempts: 2, isOpen: true });
  });

  it('visits of one step share a row, and a change within a phase cuts nothing', () => {
    const moments = [
      moment(1, 0, ['a-1', null, 'run']),
      moment(2, 1, ['a-1', 'run', 'run']),
      moment(3, 2, ['a-1', 'run', null], ['a-2', null, 'run']),
      moment(4, 4, ['a-2', 'run', 'close']),
      moment(5, 5, ['a-2', 'close', null]),
    ];
    expect(drawn(moments)).toEqual({ a: ['a-1: done 0..2', 'a-2: done 2..4, closing 4..5'] });
  });

  it('a visit that began before the first known commit begins with that commit', () => {
    expect(drawn([moment(7, 3, ['b-2', null, 'run']), moment(8, 4, ['a-1', 'incident', null])])).toEqual({
      b: ['b-2: running 3..100'],
      a: ['a-1: incident 3..4'],
    });
  });

  it('a phase that is not known is drawn as work, and no bar ends before it begins', () => {
    expect(drawn([moment(1, 3, ['a-1', null, 'dreaming'])], 1)).toEqual({ a: ['a-1: running 3..3'] });
  });
});
