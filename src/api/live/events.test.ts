import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyText } from '../../../test/harness/expected.ts';
import { readText } from '../../../test/harness/streams.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { append, topics } from '../../events/append.ts';
import { type LoggedEvent, newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { frame, frames } from './events.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const open = (query = '', headers: Record<string, string> = {}) =>
  api.fetch('GET', `/api/events${query}`, { caller: keyOf('viewer'), headers });

async function write(topic: keyof typeof topics, ...types: string[]): Promise<void> {
  const events = types.map((type) => ({ type, subject: null, body: { said: type } }));
  await api.db.transaction((tx) => append(tx, topics[topic], events, { actor: 'test', at: new Date() }));
  api.ctx.hints.send('events');
}

const seen = (text: string, type: string): boolean => text.includes(`"type":"${type}"`);
const typesIn = (text: string): (string | undefined)[] =>
  [...text.matchAll(/"type":"([^"]*)"/g)].map((match) => match[1]);

describe('event stream', () => {
  it('the stream begins at the newest event and sends later ones', async () => {
    await write('millrace_jobs', 'before');
    const answer = await open();
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    const stream = readText(answer);
    await stream.until((text) => text.endsWith('\n\n'));
    await write('millrace_projects', 'after');
    const text = await stream.until((text) => seen(text, 'after'));
    const seq = await newestPosition(api.db);
    const [id = '', data = '', ...end] = text.split('\n');
    expect([id, end]).toEqual([`id: ${seq}`, ['', '']]);
    expect(JSON.parse(data.replace('data: ', ''))).toEqual({
      seq,
      topic: 'millrace_projects',
      type: 'after',
      subject: null,
      actor: 'test',
      cause: null,
      at: anyText,
      body: { said: 'after' },
    });
    await stream.leave();
  });

  it('the stream resumes after an event by parameter or header, and the header overrides the parameter', async () => {
    const start = await newestPosition(api.db);
    await write('millrace_jobs', 'one', 'two', 'three');
    const read = async (query: string, headers: Record<string, string> = {}) => {
      const stream = readText(await open(query, headers));
      const text = await stream.until((text) => seen(text, 'three'));
      await stream.leave();
      return typesIn(text);
    };
    expect(await read(`?after=${start}`)).toEqual(['one', 'two', 'three']);
    expect(await read('', { 'last-event-id': String(start + 1) })).toEqual(['two', 'three']);
    expect(await read(`?after=${start}`, { 'last-event-id': String(start + 2) })).toEqual(['three']);
  });

  it('the stream can be limited to one topic', async () => {
    const start = await newestPosition(api.db);
    await write('millrace_jobs', 'job 1');
    await write('millrace_runs', 'run 1');
    await write('millrace_jobs', 'job 2');
    const stream = readText(await open(`?topic=millrace_jobs&after=${start}`));
    expect(typesIn(await stream.until((text) => seen(text, 'job 2')))).toEqual(['job 1', 'job 2']);
    await stream.leave();
  });

  it('thousands of events are sent in order, each once', async () => {
    const start = await newestPosition(api.db);
    const stream = readText(await open(`?after=${start}`));
    const names = Array.from({ length: 1_700 }, (_, i) => `n${i}`);
    await write('millrace_runs', ...names.slice(0, 900));
    const text = stream.until((text) => seen(text, 'n1699'));
    await write('millrace_jobs', ...names.slice(900));
    expect(typesIn(await text)).toEqual(names);
    await stream.leave();
  });

  it('an unknown topic is not found, and an invalid number is rejected', async () => {
    expect((await open('?topic=nonsense')).status).toBe(404);
    const bad = await open('?after=-1');
    expect([bad.status, await bad.json()]).toMatchObject([400, { faults: [{ path: 'query.after' }] }]);
    const header = await open('', { 'last-event-id': 'x' });
    expect([header.status, await header.json()]).toMatchObject([400, { faults: [{ path: 'headers.last-event-id' }] }]);
  });
});

describe('frames', () => {
  const event: LoggedEvent = {
    seq: 7,
    topic: 'millrace_jobs',
    type: 't',
    subject: newId(),
    actor: null,
    cause: null,
    at: new Date(0),
    body: '{"text":\n "two\\nlines"}',
  };

  async function* pages(...list: LoggedEvent[][]): AsyncGenerator<LoggedEvent[]> {
    yield* list;
  }
  const collect = async (source: AsyncIterable<Uint8Array>): Promise<string[]> => {
    const texts: string[] = [];
    for await (const chunk of source) texts.push(new TextDecoder().decode(chunk));
    return texts;
  };

  it('a frame holds an event on one line, whatever its body is', () => {
    expect(frame(event).split('\n')).toHaveLength(4);
    expect(frame({ ...event, body: 'not json\nat all' }).split('\n')).toHaveLength(4);
  });

  it('a frame is a comment if nothing has happened for long', async () => {
    expect(await collect(frames(pages([], []), 0))).toEqual([expect.stringMatching(/^: /), ':\n\n', ':\n\n']);
    expect(await collect(frames(pages([], [event], []), 10_000))).toEqual([expect.stringMatching(/^: /), frame(event)]);
  });
});
