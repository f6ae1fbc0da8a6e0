import { expect, it } from 'vitest';
import { HotTenants } from './hot-tenants.ts';

const lanes = 'none:default';

function opened(): HotTenants {
  const hot = new HotTenants();
  hot.open(lanes, ['none:default', 'none:other']);
  return hot;
}

it('a tenant of which something was said is asked with each sweep for a while, and then no more', () => {
  const hot = opened();
  hot.add('a', 0);
  hot.take('a', lanes);
  hot.sweep(9_000);
  expect([...hot.of(lanes)]).toEqual(['a']);
  hot.take('a', lanes);
  hot.sweep(11_000);
  expect([...hot.of(lanes)]).toEqual([]);
});

it('one of which nothing was said is asked once', () => {
  const hot = opened();
  hot.heat('a');
  expect([...hot.of(lanes)]).toEqual(['a']);
  hot.take('a', lanes);
  hot.sweep(1);
  hot.again('a');
  expect([...hot.of(lanes)]).toEqual([]);
});

it('one that has changed is asked again if something was lately said of it, and no other is', () => {
  const hot = opened();
  for (const name of ['a', 'b']) {
    hot.add(name, 0);
    hot.take(name, lanes);
  }
  hot.again('a');
  expect([...hot.of(lanes)]).toEqual(['a']);
});

it('one whose runs are ready in lanes that nobody here polls for is not asked; where no lanes are named it is', () => {
  const hot = opened();
  hot.open('shell:default', ['shell:default']);
  hot.add('a', 0, ['shell:default', 'docker:default']);
  hot.add('b', 0, ['none:other']);
  hot.add('c', 0);
  expect([...hot.of(lanes)]).toEqual(['b', 'c']);
  expect([...hot.of('shell:default')]).toEqual(['a', 'c']);
});
