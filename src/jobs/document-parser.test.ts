import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundled } from '../../test/harness/bundled.ts';
import { DocumentParser, type ParserLimits } from './document-parser.ts';
import { parseJobText } from './parse-job.ts';

let program: string;

beforeAll(async () => {
  program = await bundled('jobs/document-thread.ts');
});

afterAll(() => rm(dirname(program), { recursive: true }));

/** Parses everything in threads, unless said otherwise. */
function parserWith(limits: Partial<ParserLimits> = {}): DocumentParser {
  return new DocumentParser(program, { shortChars: { json: 0, yaml: 0 }, ...limits });
}

const small = 'project: p\nname: j\ntasks: [{name: a}, {name: b, depends: [task/a]}]';
/** Below all limits that are counted, and slow: the tokenizer looks at each comma for a long time. */
const slow = `a: [${','.repeat(190_000)}]`;

test('a document is the same, parsed in a thread or at once', async () => {
  expect(await parserWith().parse(small, 'yaml')).toEqual(parseJobText(small, 'yaml'));
  expect(await parserWith().parse('{"name": 5}', 'json')).toEqual(parseJobText('{"name": 5}', 'json'));
});

test('the event loop goes on while a thread parses', async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await parserWith({ timeMs: 2_000 })
    .parse(slow, 'yaml')
    .catch(() => {});
  clearInterval(timer);
  expect(turns).toBeGreaterThan(20);
});

test('a document that takes too long is refused, and the next one is parsed', async () => {
  const parser = parserWith({ timeMs: 100 });
  const refusal = { code: 'too_large', message: expect.stringContaining('takes longer than 0.1 s') as unknown };
  await expect(parser.parse(slow, 'yaml')).rejects.toMatchObject(refusal);
  const patient = parserWith();
  expect((await patient.parse(small, 'yaml')).ok).toBe(true);
});

test('documents take turns, and one too many is refused', async () => {
  const parser = parserWith({ waiting: 2 });
  const parses = [small, small, small].map((text) => parser.parse(text, 'yaml'));
  await expect(parser.parse(small, 'yaml')).rejects.toMatchObject({ code: 'overloaded', status: 503 });
  expect((await Promise.all(parses)).map(({ ok }) => ok)).toEqual([true, true, true]);
  expect((await parser.parse(small, 'yaml')).ok).toBe(true);
});

test('a document that needs too much memory is refused, and the process lives', async () => {
  const list = JSON.stringify({
    project: 'p',
    name: 'j',
    params: { x: Array.from({ length: 90_000 }, () => ({ a: 1 })) },
  });
  await expect(parserWith({ memoryMb: 8 }).parse(list, 'json')).rejects.toMatchObject({ code: 'too_large' });
});
