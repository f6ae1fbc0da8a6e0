import { expect, it } from 'vitest';
import { newId } from '../../kernel/id.ts';
import { InvalidationLog } from './invalidation-log.ts';

const change = () => ({ tenant: newId(), kind: 'project' as const, id: newId() });

it('a worker gets the invalidations that it has not seen', () => {
  const log = new InvalidationLog();
  const { epoch } = log.after({});
  const [one, two] = [change(), change()];
  log.add(one);
  log.add(two);
  expect(log.after({ [epoch]: 1 })).toEqual({ invalidate: [two], epoch, newest: 2 });
  expect(log.after({ [epoch]: 2 }).invalidate).toEqual([]);
});

it('a gateway that may have missed invalidations begins a new epoch, so that every worker drops its cache', () => {
  const log = new InvalidationLog();
  const before = log.after({});
  log.add(change());
  log.add(undefined);
  const after = log.after({ [before.epoch]: 1 });
  expect(after).toMatchObject({ invalidate: [], newest: 0 });
  expect(after.epoch).not.toBe(before.epoch);
});
