import { describe, expect, it } from 'vitest';
import { Housekeeping } from './housekeeping.ts';

const going = new AbortController().signal;

/** Work that lasts until the test calls `end`. */
function lasting(): { readonly work: () => Promise<string>; readonly begun: Promise<void>; readonly end: () => void } {
  let begin = (): void => {};
  let end = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const ended = new Promise<void>((resolve) => (end = resolve));
  const work = async (): Promise<string> => {
    begin();
    await ended;
    return 'done';
  };
  return { work, begun, end: () => end() };
}

describe('housekeeping', () => {
  it('a tenant does one piece of work at a time, in order', async () => {
    const keep = new Housekeeping().of(going);
    const [first, second] = [lasting(), lasting()];
    const both = [keep('one', first.work), keep('two', second.work)];
    await first.begun;
    let hasBegun = false;
    void second.begun.then(() => (hasBegun = true));
    await new Promise(setImmediate);
    expect(hasBegun).toBe(false);
    first.end();
    await second.begun;
    second.end();
    expect(await Promise.all(both)).toEqual(['done', 'done']);
  });

  it('a host does four pieces of work at a time; the fifth tenant waits for one of them', async () => {
    const house = new Housekeeping();
    const works = Array.from({ length: 5 }, lasting);
    const all = works.map(({ work }) => house.of(going)('x', work));
    await Promise.all(works.slice(0, 4).map(({ begun }) => begun));
    works[2]?.end();
    await works[4]?.begun;
    for (const { end } of works) end();
    expect(await Promise.all(all)).toEqual(Array.from({ length: 5 }, () => 'done'));
  });

  it('work that fails rejects, and the next piece of work follows', async () => {
    const keep = new Housekeeping().of(going);
    await expect(keep('x', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await keep('y', async () => 1)).toBe(1);
  });

  it('an ending scheduler begins no more work, and does not wait for work that goes on too long', async () => {
    const over = new AbortController();
    const keep = new Housekeeping(1).of(over.signal);
    const { work, begun, end } = lasting();
    const left = keep('x', work);
    const never = keep('y', async () => 1);
    await begun;
    over.abort();
    expect(await Promise.all([left, never])).toEqual([undefined, undefined]);
    end();
  });
});
