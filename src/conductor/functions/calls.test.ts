import { expect, it } from 'vitest';
import type { HostedCall } from '../../contract/flows.ts';
import { Calls } from './calls.ts';
import type { CallOutcome } from './hosted.ts';

const done: CallOutcome = { kind: 'done', result: null };

function callOf(key: string, name: string): HostedCall {
  return { key, execution: 'e', nid: '0-1', attempt: 1, flow: 'f', name, input: null };
}

it('A tenant whose functions never return keeps no other tenant waiting.', async () => {
  const called: string[] = [];
  const call = ({ key, name }: HostedCall): Promise<CallOutcome> => {
    called.push(key);
    return name === 'hangs' ? new Promise(() => {}) : Promise.resolve(done);
  };
  const calls = new Calls({ names: new Set(['hangs', 'returns']), call }, 4);
  for (let i = 0; i < 10; i++) calls.start({ id: 'a', name: 'a' }, callOf(`a${i}`, 'hangs'), () => {});
  const answers = await Promise.all(
    Array.from(
      { length: 10 },
      (_, i) =>
        new Promise<CallOutcome>((resolve) => {
          calls.start({ id: 'b', name: 'b' }, callOf(`b${i}`, 'returns'), (_call, outcome) => resolve(outcome));
        }),
    ),
  );
  expect(answers).toEqual(answers.map(() => done));
  expect(called.filter((key) => key.startsWith('a'))).toEqual(['a0', 'a1', 'a2']);
});

it('Calls of one tenant are made as places become free, in order.', async () => {
  const called: string[] = [];
  const call = async ({ key }: HostedCall): Promise<CallOutcome> => {
    called.push(key);
    return done;
  };
  const calls = new Calls({ names: new Set(['returns']), call }, 1);
  await Promise.all(
    ['1', '2', '3'].map(
      (key) =>
        new Promise<void>((resolve) => calls.start({ id: 'a', name: 'a' }, callOf(key, 'returns'), () => resolve())),
    ),
  );
  expect([called, calls.running]).toEqual([['1', '2', '3'], 0]);
});
