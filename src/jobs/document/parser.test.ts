import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleModule } from '../../../test/harness/bundled.ts';
import { DocumentParser, type ParserLimits } from '../../documents/parser.ts';
import { parseJobText } from './parse-job.ts';
import { type JobParseRequest, parseJobDocument } from './parse-request.ts';

let program: string;

beforeAll(async () => {
  program = await bundleModule('jobs/document/thread.ts');
});

afterAll(() => rm(dirname(program), { recursive: true }));

/** Parses everything in threads, unless `limits` say otherwise. */
function parserWith(limits: Partial<ParserLimits> = {}): DocumentParser {
  return new DocumentParser(program, { shortChars: 0, ...limits });
}

const yaml = (text: string, tenant = 't', signal?: AbortSignal): JobParseRequest => ({
  text,
  format: 'yaml',
  tenant,
  ...(signal === undefined ? {} : { signal }),
});
const json = (text: string): JobParseRequest => ({ text, format: 'json', tenant: 't' });

const small = 'project: p\nname: j\ntasks: [{name: a}, {name: b, depends: [task/a]}]';
/** A text within all limits that is slow to parse, because the tokenizer is slow at commas. */
const slow = `a: [${','.repeat(95_000)}]`;

test('a document gives the same result, parsed in a thread or in the event loop', async () => {
  expect(await parseJobDocument(parserWith(), yaml(small))).toEqual(parseJobText(small, 'yaml'));
  expect(await parseJobDocument(parserWith(), json('{"name": 5}'))).toEqual(parseJobText('{"name": 5}', 'json'));
});

test('the event loop is not blocked while a thread parses', async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await parseJobDocument(parserWith({ timeMs: 2_000 }), yaml(slow)).catch(() => {});
  clearInterval(timer);
  expect(turns).toBeGreaterThan(20);
});

test('a document that takes too long is rejected, and the next one is parsed', async () => {
  const parser = parserWith({ timeMs: 100 });
  const refusal = { code: 'too_large', message: expect.stringContaining('takes longer than 0.1 s') as unknown };
  await expect(parseJobDocument(parser, yaml(slow))).rejects.toMatchObject(refusal);
  const patient = parserWith();
  expect((await parseJobDocument(patient, yaml(small))).ok).toBe(true);
});

test('a tenant with too many waiting documents gets a rejection for one more', async () => {
  const parser = parserWith({ waitingPerTenant: 2 });
  const parses = [small, small, small].map((text) => parseJobDocument(parser, yaml(text)));
  const refusal = {
    code: 'overloaded',
    message: expect.stringContaining('2 documents of this tenant') as unknown,
  };
  await expect(parseJobDocument(parser, yaml(small))).rejects.toMatchObject(refusal);
  expect((await Promise.all(parses)).map(({ ok }) => ok)).toEqual([true, true, true]);
  expect((await parseJobDocument(parser, yaml(small))).ok).toBe(true);
});

test('parsing in the event loop, and other work for a document, takes the turn of its tenant', async () => {
  const parser = parserWith({ shortChars: 1_000, waitingPerTenant: 1 });
  let end = (): void => {};
  const forecast = parser.inTurn('t', () => new Promise<void>((resolve) => (end = resolve)));
  const order: string[] = [];
  const waiting = parseJobDocument(parser, yaml(small)).then(() => order.push('waiting'));
  await expect(parseJobDocument(parser, yaml(small))).rejects.toMatchObject({ code: 'overloaded' });
  await parseJobDocument(parser, yaml(small, 'other')).then(() => order.push('other'));
  end();
  await Promise.all([forecast, waiting]);
  expect(order).toEqual(['other', 'waiting']);
});

test('the event loop runs other work between documents that it parses', async () => {
  const parser = parserWith({ shortChars: 1_000 });
  let parsed = 0;
  const parses = Array.from({ length: 10 }, () => parseJobDocument(parser, yaml(small)).then(() => parsed++));
  const seen = new Set<number>();
  while (parsed < 10) {
    await new Promise(setImmediate);
    seen.add(parsed);
  }
  await Promise.all(parses);
  expect(seen.size).toBeGreaterThan(5);
});

test('a thread parses document after document, unless it parsed a large one or waited too long', async () => {
  const started: number[] = [];
  const count = (thread: Worker): void => void started.push(thread.threadId);
  process.on('worker', count);
  const parser = parserWith({ keptChars: 1_000 });
  for (const name of ['a', 'b', 'c']) {
    const text = `project: p\nname: ${name}`;
    expect(await parseJobDocument(parser, yaml(text))).toEqual(parseJobText(text, 'yaml'));
  }
  expect(started).toHaveLength(1);
  await parseJobDocument(parser, yaml(`${small}\n${'#'.repeat(1_000)}`));
  await parseJobDocument(parser, yaml(small));
  expect(started).toHaveLength(2);
  const impatient = parserWith({ idleMs: 0 });
  const ended = new Promise((resolve) => process.once('worker', (thread) => thread.once('exit', resolve)));
  await parseJobDocument(impatient, yaml(small));
  await ended;
  expect((await parseJobDocument(impatient, yaml(small))).ok).toBe(true);
  expect(started).toHaveLength(4);
  process.off('worker', count);
});

test('a small document of another tenant does not wait for the documents of a tenant that floods', async () => {
  const parser = parserWith();
  const ended: string[] = [];
  const flood = Array.from({ length: 6 }, () =>
    parseJobDocument(parser, yaml(slow, 'flood')).then(() => ended.push('slow')),
  );
  await parseJobDocument(parser, yaml(small, 'other')).then(() => ended.push('small'));
  // the first document of the flood has its own thread, and may be done
  expect(ended.indexOf('small')).toBeLessThanOrEqual(1);
  await Promise.all(flood);
});

test('a document whose client disconnects while it waits is never parsed', async () => {
  const parser = parserWith({ threads: 1 });
  const client = new AbortController();
  const first = parseJobDocument(parser, yaml(small));
  const left = parseJobDocument(parser, yaml(small, 't', client.signal));
  client.abort();
  await expect(left).rejects.toMatchObject({ code: 'bad_request' });
  expect((await first).ok).toBe(true);
  expect((await parseJobDocument(parser, yaml(small))).ok).toBe(true);
});

test('a document whose client disconnects frees its thread for the next one', async () => {
  const parser = parserWith({ threads: 1, timeMs: 60_000 });
  const client = new AbortController();
  const left = parseJobDocument(parser, yaml(slow, 't', client.signal));
  const next = parseJobDocument(parser, yaml(small));
  client.abort();
  await expect(left).rejects.toMatchObject({ code: 'bad_request' });
  expect((await next).ok).toBe(true);
});

test('a document that needs too much memory is rejected, and the process survives', async () => {
  const list = JSON.stringify({
    project: 'p',
    name: 'j',
    params: { x: Array.from({ length: 90_000 }, () => ({ a: 1 })) },
  });
  await expect(parseJobDocument(parserWith({ memoryMb: 8 }), json(list))).rejects.toMatchObject({ code: 'too_large' });
});
