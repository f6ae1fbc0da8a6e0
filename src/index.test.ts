import { expect, it, vi } from 'vitest';
import { wireKey, WireServer } from '../test/conformance/wire-server.ts';
import { createWorker } from './index.ts';

it('a worker made from the package runs the functions it was given, and offers nothing else', async () => {
  const server = new WireServer();
  const url = await server.start();
  const greet = (input: unknown, { log }: { log: (line: string) => void }): void => log(`hello ${String(input)}`);
  const worker = createWorker({ url, key: wireKey, name: 'mine', functions: { greet } });
  await worker.start();
  const run = server.offer(server.define({ kind: 'function', name: 'greet', input: '{{params.who}}' }), {
    params: { who: 'you' },
  });
  await vi.waitFor(() => expect(server.report(run)?.state).toBe('success'), { timeout: 10_000 });
  await worker.stop();
  expect(server.output(run)).toBe('hello you\n');
  expect(server.heartbeats[0]).toMatchObject({
    name: 'mine',
    runtimes: ['none', 'function'],
    queues: ['default'],
    places: 8,
  });
  await server.stop();
});

it('a worker that cannot work is refused with every fault', () => {
  expect(() => createWorker({ url: 'nowhere', key: '', maxTasks: 0 })).toThrow(/url: .*key: .*maxTasks: /);
});
