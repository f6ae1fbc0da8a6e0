import { expect, it } from 'vitest';
import { type ContainerEnd, outcomeOf } from './container-end.ts';

const end: ContainerEnd = {
  exitCode: 0,
  outOfMemory: false,
  memoryBytes: undefined,
  engineWasAway: false,
  engineIsAway: false,
  wasKilled: false,
};
const limit = 20 * 1024 * 1024;

it.each<[string, Partial<ContainerEnd>, string, string | null]>([
  ['exit code 0', {}, 'success', null],
  ['exit code 0 although the engine was away', { engineWasAway: true }, 'success', null],
  ['another exit code', { exitCode: 3 }, 'failure', 'it ended with exit code 3'],
  ['a missing command', { exitCode: 127 }, 'failure', 'it ended with exit code 127 (a command was not found)'],
  [
    'no memory, said by the engine',
    { exitCode: 137, outOfMemory: true, memoryBytes: limit },
    'failure',
    'it ran out of memory (limit 20 MiB)',
  ],
  [
    'a kill under a limit of memory',
    { exitCode: 137, memoryBytes: limit },
    'failure',
    'it was killed; probably it ran out of memory (limit 20 MiB)',
  ],
  ['a kill without a limit', { exitCode: 137 }, 'failure', 'it ended with exit code 137'],
  [
    'our own kill while the engine is away',
    { exitCode: 137, wasKilled: true, engineIsAway: true },
    'failure',
    'it was stopped, and ended with exit code 137',
  ],
  [
    'any failure while the engine is away',
    { exitCode: 5, engineIsAway: true },
    'lost',
    'the Docker engine stopped, and ended its container with exit code 5',
  ],
  [
    'a kill, and the engine was away before',
    { exitCode: 137, engineWasAway: true },
    'lost',
    'the Docker engine stopped, and ended its container with exit code 137',
  ],
  [
    'a failure of its own, and the engine was away before',
    { exitCode: 5, engineWasAway: true },
    'failure',
    'it ended with exit code 5',
  ],
  ['no container', { exitCode: undefined }, 'error', 'its container was removed by somebody while it ran'],
  [
    'no container, and the engine was away before',
    { exitCode: undefined, engineWasAway: true },
    'lost',
    'its container disappeared while the Docker engine was away',
  ],
])('the end of a container by %s has its outcome', (_, more, state, reason) => {
  expect(outcomeOf({ ...end, ...more })).toMatchObject({ state, reason });
});
