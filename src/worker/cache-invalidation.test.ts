import { expect, it } from 'vitest';
import type { Invalidation } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { News } from './cache-invalidation.ts';

const change = (): Invalidation => ({ tenant: 'a', kind: 'task', id: newId() });

function setUp(): { news: News; dropped: (Invalidation | 'all')[] } {
  const dropped: (Invalidation | 'all')[] = [];
  return { news: new News({ drop: (one) => dropped.push(one), dropAll: () => dropped.push('all') }), dropped };
}

it('of a gateway that is not known drops everything, once; then what it tells', () => {
  const { news, dropped } = setUp();
  const [one, two] = [change(), change()];
  news.hear({ epoch: 'g', newest: 3, invalidate: [] });
  news.hear({ epoch: 'g', newest: 3, invalidate: [] });
  news.hear({ epoch: 'g', newest: 5, invalidate: [one, two] });
  expect([dropped, news.seen]).toEqual([['all', one, two], { g: 5 }]);
});

it('that was told twice, to two requests at once, is no gap', () => {
  const { news, dropped } = setUp();
  const [one, two] = [change(), change()];
  news.hear({ epoch: 'g', newest: 0, invalidate: [] });
  news.hear({ epoch: 'g', newest: 2, invalidate: [one, two] });
  news.hear({ epoch: 'g', newest: 1, invalidate: [one] });
  expect([dropped, news.seen]).toEqual([['all', one, two, one], { g: 2 }]);
});

it('of which not all could be told drops everything', () => {
  const { news, dropped } = setUp();
  news.hear({ epoch: 'g', newest: 0, invalidate: [] });
  news.hear({ epoch: 'g', newest: 2_000, invalidate: [change()] });
  expect([dropped, news.seen]).toEqual([['all', 'all'], { g: 2_000 }]);
});

it('is counted for a few gateways, those heard last', () => {
  const { news } = setUp();
  for (let i = 0; i < 100; i++) {
    news.hear({ epoch: `g${i}`, newest: i, invalidate: [] });
    news.hear({ epoch: 'steady', newest: 0, invalidate: [] });
  }
  expect(Object.keys(news.seen)).toHaveLength(16);
  expect(news.seen).toMatchObject({ g99: 99, steady: 0 });
});
