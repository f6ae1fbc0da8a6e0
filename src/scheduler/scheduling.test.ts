import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { makePipeline, type Pipeline } from '../../test/harness/pipeline.ts';
import { until } from '../../test/harness/until.ts';
import { Scheduling } from './scheduling.ts';

let line: Pipeline;
beforeAll(async () => {
  line = await makePipeline();
});
afterAll(() => line.close());

it('a repeated fault is logged once a minute; another fault, or one of another processor, is logged at once', () => {
  const context = makeContext(line);
  const { fault } = new Scheduling(context);
  const [firing, pruning] = [fault('firing'), fault('pruning')];
  const [one, other, lost] = [new Error('one'), new Error('other'), new Error('Connection terminated')];
  for (let i = 0; i < 5; i++) firing(one);
  expect(context.faults).toEqual([one]);
  pruning(one);
  firing(other);
  firing(lost);
  firing(lost);
  expect(context.faults).toEqual([one, one, other, { doing: 'firing' }]);
  line.time.advance(59_999);
  firing(lost);
  expect(context.faults).toHaveLength(4);
  line.time.advance(1);
  firing(lost);
  expect(context.faults).toHaveLength(5);
});

it('a processor that fails every time keeps retrying, and logs the fault once', async () => {
  const context = makeContext(line);
  let passes = 0;
  const processor = new Scheduling(context).processor('broken', 'working', async () => {
    passes++;
    throw new Error('always');
  });
  await processor.start();
  await until('it has tried a few times', () => passes > 3 || undefined);
  await processor.stop();
  expect(context.faults).toHaveLength(1);
});
