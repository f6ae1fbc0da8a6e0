import { expect, it, vi } from 'vitest';
import type { LogChunk } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { LogShipper, type LogShipperOptions } from './log-shipper.ts';

/** Accepts chunks on command. */
class Sink {
  readonly requests: LogChunk[][] = [];
  readonly dropped: unknown[] = [];
  #gate: Promise<void> | undefined;
  open = (): void => {};

  shut(): void {
    this.#gate = new Promise((resolve) => {
      this.open = resolve;
    });
  }

  shipper(options: Partial<LogShipperOptions> = {}): LogShipper {
    return new LogShipper({
      send: async (chunks) => {
        this.requests.push(chunks);
        await this.#gate;
      },
      now: () => 0,
      onDropped: (error) => this.dropped.push(error),
      intervalMs: 20,
      ...options,
    });
  }

  text(run: string): string {
    const own = this.requests.flat().filter((chunk) => chunk.run === run);
    expect(own.map((chunk) => chunk.number)).toEqual(own.map((_, i) => i));
    return own.map((chunk) => Buffer.from(chunk.data, 'base64').toString()).join('');
  }
}

const held = (): { tenant: string; run: string; lease: number } => ({ tenant: 'default', run: newId(), lease: 1 });
const patience = { timeout: 5_000, interval: 2 };

it('pending output of all runs is sent as one request, with one chunk per stream and run', async () => {
  const sink = new Sink();
  const shipper = sink.shipper();
  const runs = [held(), held(), held()];
  const logs = runs.map((run) => shipper.open(run));
  for (let i = 0; i < 10; i++) for (const log of logs) expect(log.write('out', Buffer.from(`${i}`))).toBeUndefined();
  await vi.waitFor(() => expect(sink.requests).toHaveLength(1), patience);
  expect(sink.requests[0]).toHaveLength(3);
  for (const { run } of runs) expect(sink.text(run)).toBe('0123456789');
});

it('the order of both streams is kept', async () => {
  const sink = new Sink();
  const run = held();
  const log = sink.shipper().open(run);
  for (let i = 0; i < 20; i++) void log.write(i % 2 === 0 ? 'out' : 'err', Buffer.from(`${i} `));
  await log.close();
  expect(sink.requests.flat().map((chunk) => chunk.stream)).toEqual(
    Array.from({ length: 20 }, (_, i) => (i % 2 ? 'err' : 'out')),
  );
  expect(sink.text(run.run)).toBe(Array.from({ length: 20 }, (_, i) => `${i} `).join(''));
});

it('close waits until the last byte is acknowledged, and not at all without output', async () => {
  const sink = new Sink();
  sink.shut();
  const shipper = sink.shipper({ intervalMs: 60_000 });
  await shipper.open(held()).close();
  const run = held();
  const log = shipper.open(run);
  void log.write('out', Buffer.from('last words'));
  let closed = false;
  const closing = log.close().then(() => (closed = true));
  await vi.waitFor(() => expect(sink.requests).toHaveLength(1), patience);
  expect(closed).toBe(false);
  sink.open();
  await closing;
  expect(sink.text(run.run)).toBe('last words');
});

it('a run with too much unsent output waits, and every run does while all together have too much', async () => {
  const sink = new Sink();
  sink.shut();
  const shipper = sink.shipper({ runBytes: 1_000, totalBytes: 3_000 });
  const [greedy, other, third] = [shipper.open(held()), shipper.open(held()), shipper.open(held())];
  expect(greedy.write('out', Buffer.alloc(900))).toBeUndefined();
  const wait = greedy.write('out', Buffer.alloc(900));
  expect(wait).toBeInstanceOf(Promise);
  expect(other.write('out', Buffer.alloc(900))).toBeUndefined();
  const blocked = third.write('out', Buffer.alloc(900));
  expect(blocked).toBeInstanceOf(Promise);
  sink.open();
  await Promise.all([wait, blocked]);
});

it('no run waits while the API is unreachable; output beyond the limit is dropped, and a line says so', async () => {
  const sink = new Sink();
  sink.shut();
  const shipper = sink.shipper({ runBytes: 1_000, awayAfterMs: 50, awayRunBytes: 5_000, awayTotalBytes: 8_000 });
  const [talker, other] = [held(), held()];
  const logs = { talker: shipper.open(talker), other: shipper.open(other) };
  await logs.talker.write('out', Buffer.alloc(3_000, 'a')); // resolves, although nothing was accepted
  expect(sink.requests).toHaveLength(1);
  for (const text of ['b', 'c', 'd']) expect(logs.talker.write('out', Buffer.alloc(1_500, text))).toBeUndefined();
  expect(logs.other.write('out', Buffer.alloc(3_000, 'e'))).toBeUndefined();
  expect(logs.other.write('out', Buffer.alloc(600, 'f'))).toBeUndefined();
  sink.open();
  await vi.waitFor(() => expect(sink.text(talker.run)).toContain('b'), patience);
  void logs.talker.write('out', Buffer.from('later'));
  await Promise.all([logs.talker.close(), logs.other.close()]);
  const lost = (bytes: number): string => `\n[millrace] ${bytes} bytes were lost here: the API did not answer\n`;
  expect(sink.text(talker.run)).toBe(`${'a'.repeat(3_000)}${'b'.repeat(1_500)}${lost(3_000)}later`);
  expect(sink.text(other.run)).toBe(`${'e'.repeat(3_000)}${lost(600)}`);
});

it('abandoned output is not sent, and its waits end', async () => {
  const sink = new Sink();
  const shipper = sink.shipper({ intervalMs: 60_000, runBytes: 10 });
  const [gone, kept] = [held(), held()];
  const log = shipper.open(gone);
  const wait = log.write('out', Buffer.alloc(100));
  log.abandon();
  await wait;
  await log.close();
  const other = shipper.open(kept);
  void other.write('out', Buffer.from('kept'));
  await other.close();
  expect([sink.text(gone.run), sink.text(kept.run)]).toEqual(['', 'kept']);
});

it('a permanently rejected request is dropped and logged, and the next is sent', async () => {
  const sink = new Sink();
  let refuse = true;
  const sent: LogChunk[] = [];
  const shipper = sink.shipper({
    send: async (chunks) => {
      if (refuse) throw new Error('refused');
      sent.push(...chunks);
    },
  });
  const log = shipper.open(held());
  void log.write('out', Buffer.from('bad'));
  await log.close();
  expect(sink.dropped).toHaveLength(1);
  refuse = false;
  void log.write('out', Buffer.from('good'));
  await log.close();
  expect(sent.map((chunk) => Buffer.from(chunk.data, 'base64').toString())).toEqual(['good']);
});

it('requests and chunks are limited in size, and runs take turns', async () => {
  const sink = new Sink();
  const shipper = sink.shipper({ runBytes: 1e9, totalBytes: 1e9 });
  const [large, small] = [held(), held()];
  const logs = [shipper.open(large), shipper.open(small)];
  for (let i = 0; i < 40; i++) void logs[0]?.write('out', Buffer.alloc(50_000, 'x'));
  void logs[1]?.write('out', Buffer.from('small'));
  await Promise.all(logs.map((log) => log.close()));
  const sizes = sink.requests.map((request) => request.reduce((sum, chunk) => sum + (chunk.data.length * 3) / 4, 0));
  expect(Math.max(...sizes)).toBeLessThan(600_000);
  expect(sink.requests[0]?.some((chunk) => chunk.run === small.run)).toBe(true);
  expect(sink.text(large.run)).toHaveLength(2_000_000);
});

it('stop ends every wait', async () => {
  const sink = new Sink();
  sink.shut();
  const shipper = sink.shipper({ runBytes: 10 });
  const log = shipper.open(held());
  const wait = log.write('out', Buffer.alloc(100));
  const closing = log.close();
  shipper.stop();
  await Promise.all([wait, closing]);
  expect(log.write('out', Buffer.alloc(100))).toBeUndefined();
});
