import { expect, it } from 'vitest';
import { logOutput } from './log-output.ts';

it('Of what a function prints, the first 64 KiB are logged, and one line says that there was more.', () => {
  const infos: string[] = [];
  const warnings: object[] = [];
  const log = {
    info: (fields: unknown) => void infos.push((fields as { text: string }).text),
    warn: (fields: unknown) => void warnings.push(fields as object),
  };
  const output = logOutput(log, { function: 'prints' });
  void output.write('out', Buffer.from('hello\n'));
  for (let i = 0; i < 1_000; i++) void output.write('out', Buffer.alloc(50_000, 'x'));
  expect([infos[0], infos.join('').length]).toEqual(['hello', 64 * 1024 - 1]);
  expect(warnings).toEqual([{ function: 'prints', maxLoggedBytes: 64 * 1024 }]);
});
