import { describe, expect, it } from 'vitest';
import { blocksOf } from './blocks.ts';

describe('blocks of a history', () => {
  it('a short history is one block, which is another one after each commit', () => {
    expect(blocksOf(0, 50)).toEqual([{ after: 0, upTo: 0 }]);
    expect(blocksOf(7, 50)).toEqual([{ after: 0, upTo: 7 }]);
    expect(blocksOf(100, 50)).toEqual([{ after: 0, upTo: 100 }]);
  });

  it('full blocks stay the same while the last one grows', () => {
    expect(blocksOf(250, 1_000)).toEqual([
      { after: 0, upTo: 100 },
      { after: 100, upTo: 200 },
      { after: 200, upTo: 250 },
    ]);
    expect(blocksOf(251, 1_000).slice(0, 2)).toEqual(blocksOf(250, 1_000).slice(0, 2));
  });

  it('only as many blocks are read as hold the newest entries', () => {
    expect(blocksOf(10_050, 100)).toEqual([
      { after: 9_900, upTo: 10_000 },
      { after: 10_000, upTo: 10_050 },
    ]);
  });
});
