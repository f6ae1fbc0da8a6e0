import { afterEach, expect, it, vi } from 'vitest';
import { PipeStock } from './pipes.ts';

afterEach(() => vi.unstubAllEnvs());

it('a machine without mkfifo is named as the cause, not the command of the task', async () => {
  const stock = await PipeStock.make();
  vi.stubEnv('PATH', '/nonexistent');
  const failure = await stock.take().catch((error: unknown) => error);
  await stock.remove();
  expect(failure).toMatchObject({ message: 'this machine has no mkfifo: install coreutils' });
  expect(failure).not.toHaveProperty('code');
});
