/** The cost and the limits of reading a body: the work is linear in its length, and the number of reported faults is bounded. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { heartbeatBytes, heartbeatRequest, reportRequest } from '../contract/wire.ts';
import { MillraceError } from '../errors.ts';
import { newId } from '../kernel/id.ts';
import { readBody } from './body.ts';

type Rules = Parameters<typeof readBody>[1];

function requestWith(body: string | ReadableStream, headers: Record<string, string> = {}): Request {
  const length = typeof body === 'string' ? { 'content-length': String(Buffer.byteLength(body)) } : {};
  return new Request('http://x/', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...length, ...headers },
    duplex: 'half',
  });
}

async function readRejection(body: string | ReadableStream, rules: Rules): Promise<MillraceError> {
  const error = await readBody(requestWith(body), rules).then(
    () => undefined,
    (fault: unknown) => fault,
  );
  if (error instanceof MillraceError) return error;
  throw new Error('was read', { cause: error });
}

const anything: Rules = { allow: ['operator'], body: z.unknown() };

describe('length of a body', () => {
  it('a body may have 4 KiB if no key is needed, 64 KiB of JSON, or 4 MiB of bytes or a document', async () => {
    const cases: [Rules, number][] = [
      [{ allow: ['anyone'], body: z.unknown() }, 4 * 1024],
      [anything, 64 * 1024],
      [{ allow: ['operator'], body: 'bytes' }, 4 * 1024 * 1024],
      [{ allow: ['operator'], body: 'document' }, 4 * 1024 * 1024],
      [{ ...anything, bodyBytes: 100 }, 100],
    ];
    for (const [rules, limit] of cases) {
      const text = `"${'x'.repeat(limit - 2)}"`;
      await readBody(requestWith(text), rules);
      expect((await readRejection(`${text} `, rules)).code).toBe('too_large');
    }
  });

  it('a body whose announced length is too large is rejected before any of it is read', async () => {
    let pulls = 0;
    const body = new ReadableStream({ pull: () => void pulls++ }, { highWaterMark: 0 });
    const request = requestWith(body, { 'content-length': '5000000' });
    await expect(readBody(request, anything)).rejects.toMatchObject({ code: 'too_large' });
    expect(pulls).toBe(0);
  });

  it('a body without an announced length is counted while it arrives', async () => {
    let pulls = 0;
    const body = new ReadableStream({
      pull(controller) {
        pulls++;
        controller.enqueue(new Uint8Array(1024).fill(0x20));
      },
    });
    expect((await readRejection(body, anything)).code).toBe('too_large');
    expect(pulls).toBeLessThan(70);
  });
});

describe('bodies with many or deeply nested values', () => {
  it('a body with too many or too deeply nested values is rejected before it is parsed', async () => {
    const rules = { ...anything, bodyBytes: heartbeatBytes };
    expect((await readRejection('['.repeat(3_000_000), rules)).message).toBe('body: nested more than 200 deep');
    expect((await readRejection(`[${'[],'.repeat(1_000_000)}[]]`, rules)).message).toBe(
      'body: more than 200000 values',
    );
    const fields = Array.from({ length: 10_001 }, (_, i) => `"f${i}":1`).join();
    expect((await readRejection(`[{${fields}}]`, rules)).message).toBe('body: an object has more than 10000 fields');
    expect(await readBody(requestWith(`${'['.repeat(200)}${']'.repeat(200)}`), anything)).toBeDefined();
    // brackets within a string do not count
    expect(await readBody(requestWith(JSON.stringify(`\\"${'['.repeat(300)}`)), anything)).toMatch(/^\\"\[/);
  });

  it('at most fifty faults of a body are reported', async () => {
    const list = { allow: ['operator'], body: z.array(z.object({ a: z.string(), b: z.string() })) } as const;
    const { faults, message } = await readRejection(JSON.stringify(Array.from({ length: 1_000 }, () => ({}))), list);
    expect(faults).toHaveLength(50);
    expect(faults[3]).toEqual({ path: 'body[1].b', message: 'is required' });
    expect(message).toMatch(/; and 1950 more$/);
  });

  it('a body whose values are all wrong costs no more than a valid one', async () => {
    const identity = { worker: newId(), incarnation: 1 };
    const held = { tenant: newId(), run: newId(), lease: 1 };
    const right = { ...held, state: 'success', reason: null, exit_code: 0, started_at: null };
    const body = (one: unknown): string =>
      JSON.stringify({ ...identity, reports: Array.from({ length: 10_000 }, () => one) });
    const rules: Rules = { allow: ['worker'], body: reportRequest, bodyBytes: 1 << 22 };
    const measureCpu = async (work: () => Promise<unknown>): Promise<number> => {
      const before = process.cpuUsage();
      await work();
      return process.cpuUsage(before).user;
    };
    const good = await measureCpu(() => readBody(requestWith(body(right)), rules));
    // before faults were limited, this took thirty times as long
    expect(await measureCpu(() => readRejection(body({}), rules))).toBeLessThan(2 * good);
    const beat = { ...identity, name: '', addr: '', version: '', places: 1, runtimes: [], queues: [], seen: {} };
    const holds = JSON.stringify({ ...beat, holds: Array.from({ length: 100_000 }, () => ({})) });
    const beatRules: Rules = { allow: ['worker'], body: heartbeatRequest, bodyBytes: heartbeatBytes };
    expect(await measureCpu(() => readRejection(holds, beatRules))).toBeLessThan(2 * good);
  });
});

it('a text that the database cannot store is rejected with its path', async () => {
  expect((await readRejection('{"a":[1,{"b":"\\u0000"}]}', anything)).faults).toEqual([
    { path: 'body.a.1.b', message: 'holds a NUL character' },
  ]);
  expect((await readRejection('{"a":{"\\ud800":1}}', anything)).faults).toEqual([
    { path: 'body.a', message: 'holds half of a surrogate pair' },
  ]);
});
