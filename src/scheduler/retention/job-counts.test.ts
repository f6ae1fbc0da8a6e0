import { describe, expect, it } from 'vitest';
import { JobCounts } from './job-counts.ts';

const minute = 60_000;
const listDueIds = (counts: JobCounts, nowMs: number): string[] =>
  counts
    .due(nowMs, 50, 1_000)
    .flat()
    .map((job) => job.id);

describe('counting jobs', () => {
  it('a new job is counted, unless all its runs are kept', () => {
    const counts = new JobCounts();
    counts.know('a', 100);
    counts.know('b', null);
    expect(counts.due(0, 50, 1_000)).toEqual([[{ id: 'a', keep: 100 }]]);
    counts.know('a', null);
    expect(counts.due(0, 50, 1_000)).toEqual([]);
  });

  it('a job is counted again when its rate predicts too many runs, and within ten minutes', () => {
    const counts = new JobCounts();
    counts.know('a', 1_000);
    expect(counts.note('a', { runs: 100, surplus: 0 }, 0)).toBe(false);
    expect(listDueIds(counts, minute)).toEqual(['a']);
    // 200 runs in a minute, room for 800 more
    counts.note('a', { runs: 300, surplus: 0 }, minute);
    expect(listDueIds(counts, 4 * minute)).toEqual([]);
    expect(listDueIds(counts, 5 * minute)).toEqual(['a']);
    counts.note('a', { runs: 300, surplus: 0 }, 5 * minute);
    expect(listDueIds(counts, 14 * minute)).toEqual([]);
    expect(listDueIds(counts, 15 * minute)).toEqual(['a']);
  });

  it('a job is counted again at once if only a part of its surplus could be removed', () => {
    const counts = new JobCounts();
    counts.know('a', 1_000);
    expect(counts.note('a', { runs: 500_000, surplus: 100_000 }, 0)).toBe(true);
    expect(listDueIds(counts, 0)).toEqual(['a']);
    expect(counts.note('a', { runs: 400_000, surplus: 399_000 }, 0)).toBe(false);
    expect(listDueIds(counts, 0)).toEqual([]);
  });

  it('a job is counted at once if the number of runs to keep has changed, and only then', () => {
    const counts = new JobCounts();
    counts.know('a', 1_000);
    counts.note('a', { runs: 10, surplus: 0 }, 0);
    counts.know('a', 1_000);
    expect(listDueIds(counts, 0)).toEqual([]);
    counts.know('a', 5);
    expect(listDueIds(counts, 0)).toEqual(['a']);
  });

  it('jobs are counted in groups of few jobs and few runs', () => {
    const counts = new JobCounts();
    const sizes = { a: 600, b: 600, c: 10, d: 10, e: 10 };
    for (const [id, runs] of Object.entries(sizes)) {
      counts.know(id, 10_000);
      counts.note(id, { runs, surplus: 0 }, 0);
    }
    const groups = counts.due(20 * minute, 2, 1_000).map((group) => group.map((job) => job.id));
    expect(groups).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
    expect(counts.due(20 * minute, 5, 500).map((group) => group.length)).toEqual([1, 1, 3]);
  });
});
