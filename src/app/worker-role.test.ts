import { expect, it } from 'vitest';
import { readConfig } from '../config.ts';
import { runWorker } from './worker-role.ts';

it.each([
  [['function'], '--runtime function: no functions are given; name their file with --functions FILE.js'],
  [['process', 'function'], '--runtime function: no functions are given; name their file with --functions FILE.js'],
] as const)('a worker with the unavailable runtimes %s does not start', async (runtimes, message) => {
  const role = { config: readConfig({}), signal: AbortSignal.abort(), say: () => {} };
  const asked = runWorker(role, { url: 'http://127.0.0.1:1', key: 'k', runtimes });
  await expect(asked).rejects.toMatchObject({ code: 'bad_configuration', message });
});
