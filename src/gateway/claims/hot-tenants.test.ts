import { expect, it } from 'vitest';
import { HotTenants } from './hot-tenants.ts';

const lanes = 'none:default';

function opened(): HotTenants {
  const hot = new HotTenants();
  hot.open(lanes, ['none:default', 'none:other']);
  return hot;
}

it('where bells may be lost, tenants of which something was lately said are asked once more', () => {
  const hot = opened();
  hot.add('a', 0);
  hot.take('a', lanes, 0);
  hot.forgetOld(9_000);
  hot.heatAll();
  expect([...hot.of(lanes)]).toEqual(['a']);
  hot.take('a', lanes, 9_000);
  hot.forgetOld(11_000);
  hot.heatAll();
  expect([...hot.of(lanes)]).toEqual([]);
});

it('whoever was just asked is not asked again for what its scheduler says, which is a little old', () => {
  const hot = opened();
  hot.open('shell:default', ['shell:default']);
  hot.add('a', 0, ['none:default']);
  hot.take('a', lanes, 0);
  hot.remind('a', 2_000);
  expect([...hot.of(lanes)]).toEqual([]);
  expect([...hot.of('shell:default')]).toEqual(['a']);
  hot.remind('a', 4_000);
  expect([...hot.of(lanes)]).toEqual(['a']);
});

it('one of which nothing was said is asked once', () => {
  const hot = opened();
  hot.heat('a');
  expect([...hot.of(lanes)]).toEqual(['a']);
  hot.take('a', lanes, 0);
  hot.heatAll();
  hot.again('a');
  expect([...hot.of(lanes)]).toEqual([]);
});

it('one that has changed is asked again if something was lately said of it, and no other is', () => {
  const hot = opened();
  for (const name of ['a', 'b']) {
    hot.add(name, 0);
    hot.take(name, lanes, 0);
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

it('nothing is kept of a tenant that was asked, and of which nothing was said since: it may be gone', () => {
  const hot = opened();
  hot.add('a', 0);
  hot.heat('b');
  for (const name of ['a', 'b']) hot.take(name, lanes, 0);
  hot.forgetOld(2_999);
  expect(hot.size).toBe(2);
  hot.forgetOld(10_001);
  expect(hot.size).toBe(0);
});
