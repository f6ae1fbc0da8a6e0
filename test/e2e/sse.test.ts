/** The event stream, followed as by a browser or a script while jobs run. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, bearer } from '../harness/ask.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { readText, type TextStream } from '../harness/streams.ts';

interface Told {
  readonly id: number;
  readonly topic: string;
  readonly type: string;
  readonly subject: string | null;
  readonly actor: string;
  readonly cause: string | null;
  readonly at: string;
  readonly body: Readonly<Record<string, unknown>>;
}

let product: Product;
beforeAll(async () => {
  product = await startProduct();
  await product.call('PUT /api/projects', { body: { name: 'told' } });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

async function open(query = '', headers: Record<string, string> = {}): Promise<TextStream> {
  const response = await fetch(`${product.url}/api/events${query}`, {
    headers: { ...bearer(product.rootKey), ...headers },
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  return readText(response);
}

/** By the letter of the standard: fields until an empty line; here none but id and data may be. */
function parse(text: string): Told[] {
  const blocks = text.split('\n\n').slice(0, -1);
  const messages = blocks.map((block) =>
    block.split('\n').filter((line) => !line.startsWith(':') && !line.startsWith('retry:')),
  );
  return messages
    .filter((lines) => lines.length > 0)
    .map((lines) => {
      expect(lines.map((line) => line.slice(0, line.indexOf(':')))).toEqual(['id', 'data']);
      const [id = '', data = ''] = lines.map((line) => line.slice(line.indexOf(': ') + 2));
      return { ...(JSON.parse(data) as Omit<Told, 'id'>), id: Number(id) };
    });
}

/** Reads whole messages until one of them is this. */
async function readUntil(stream: TextStream, wanted: (event: Told) => boolean): Promise<Told[]> {
  const text = await stream.until((seen) => seen.endsWith('\n\n') && parse(seen).some(wanted));
  return parse(text);
}

/** A chain of tasks without a runtime: `length` runs that follow each other. */
async function makeChain(name: string, length: number): Promise<string> {
  const tasks = Array.from({ length }, (_, i) => ({
    name: `t${i}`,
    ...(i === 0 ? {} : { depends: [`task/t${i - 1}`] }),
  }));
  const { id } = await product.call('PUT /api/jobs', { body: JSON.stringify({ project: 'told', name, tasks }) });
  return id;
}

async function run(job: string): Promise<{ instant: string; runs: string[] }> {
  return product.call('POST /api/jobs/{id}/run', { params: { id: job }, body: {} });
}

const isRun = (event: Told): boolean => event.topic === 'millrace_runs';

describe('event stream', () => {
  it('the stream has two events for each run, created and finished, in order and numbered', async () => {
    const job = await makeChain('pair', 2);
    const stream = await open();
    await stream.until((text) => text.endsWith('\n\n'));
    const { runs } = await run(job);
    const events = await readUntil(
      stream,
      (event) => event.type === 'run.finished' && event.cause === null && event.subject !== runs[0],
    );
    await stream.leave();
    const [first] = runs;
    const second = events.find((event) => event.type === 'run.created' && event.subject !== first)?.subject;
    expect(events.filter(isRun).map(({ type, subject }) => [type, subject])).toEqual([
      ['run.created', first],
      ['run.finished', first],
      ['run.created', second],
      ['run.finished', second],
    ]);
    expect(events.map(({ id }) => id)).toEqual(events.map(({ id }) => id).toSorted((a, b) => a - b));
    const created = events.filter((event) => event.type === 'run.created');
    expect(created.map(({ cause }) => cause)).toEqual([null, first]);
    expect(events.find((event) => event.type === 'run.finished')?.body).toMatchObject({ state: 'success' });
    expect(events.find((event) => event.type === 'job.run')).toMatchObject({
      topic: 'millrace_jobs',
      subject: job,
      actor: 'key:root',
    });
  });

  it('the stream can be limited to one topic', async () => {
    const stream = await open('?topic=millrace_runs');
    await stream.until((text) => text.endsWith('\n\n'));
    await run(await makeChain('one topic', 1));
    const events = await readUntil(stream, (event) => event.type === 'run.finished');
    expect(events.map(({ topic, type }) => [topic, type])).toEqual([
      ['millrace_runs', 'run.created'],
      ['millrace_runs', 'run.finished'],
    ]);
    await stream.leave();
    expect((await fetch(`${product.url}/api/events?topic=nonsense`, { headers: bearer(product.rootKey) })).status).toBe(
      404,
    );
  });

  it('a stream that breaks repeatedly while jobs run is resumed without gaps and repeats', async () => {
    const [from] = await readUntilJob();
    const jobs = await Promise.all(['left', 'right'].map((name) => makeChain(name, 40)));
    const whole = await open(`?after=${from}`);
    const started = Promise.all(jobs.flatMap((job) => [run(job), run(job)]));
    const pieces: Told[] = [];
    const finished = (): number => pieces.filter((event) => event.type === 'run.finished').length;
    const expectedRuns = 4 * 40;
    let breaks = 0;
    while (finished() < expectedRuns) {
      const stream = await open('', { 'last-event-id': String(pieces.at(-1)?.id ?? from) });
      // disconnects after the first read, possibly in the middle of a message
      const text = await stream.until((seen) => seen.includes('data: '));
      await stream.leave();
      pieces.push(...parse(text));
      breaks++;
    }
    await started;
    const last = pieces.at(-1)?.id;
    // the pieces lack later events
    const read = await readUntil(whole, (event) => event.id === last);
    const all = read.slice(0, read.findIndex(({ id }) => id === last) + 1);
    await whole.leave();
    expect(breaks).toBeGreaterThan(3);
    expect(pieces.map(({ id, type, subject }) => [id, type, subject])).toEqual(
      all.map(({ id, type, subject }) => [id, type, subject]),
    );
    expect(new Set(all.filter((event) => event.type === 'run.finished').map(({ subject }) => subject)).size).toBe(
      expectedRuns,
    );
    expectCreatedFirst(all);
  });

  it('a refused change sends no event', async () => {
    const [from] = await readUntilJob();
    const before = await product.call('GET /api/jobs', {});
    const refused = [
      { project: 'told', name: 'bad', tasks: [{ name: 'a', depends: ['task/ghost'] }] },
      { project: 'nowhere', name: 'bad', tasks: [{ name: 'a' }] },
      { project: 'told', name: 'bad', tasks: [{ name: 'a', depends: ['no such job/task/b'] }] },
      { uuid: randomUUID(), project: 'told', name: 'pair', tasks: [{ name: 'a' }] },
    ];
    const headers = { ...bearer(product.rootKey), 'content-type': 'application/json' };
    const statuses = await Promise.all(
      refused.map(
        async (document) =>
          (await ask(`${product.url}/api/jobs`, { method: 'PUT', headers, body: JSON.stringify(document) })).status,
      ),
    );
    expect(statuses).toEqual([400, 400, 400, 409]);
    await product.call('PUT /api/jobs?dry_run=true' as 'PUT /api/jobs', {
      body: JSON.stringify({ project: 'told', name: 'dry', tasks: [{ name: 'a' }] }),
    });
    const [, events] = await readUntilJob(from);
    expect(events.map(({ type }) => type)).toEqual(['job.created']);
    const after = await product.call('GET /api/jobs', {});
    expect('items' in before && 'items' in after && after.items.length - before.items.length).toBe(1);
  });

  it('the stream is open to readers only', async () => {
    expect((await ask(`${product.url}/api/events`)).status).toBe(401);
    const { key } = await product.call('POST /api/keys', { body: { name: 'publishes', role: 'publisher' } });
    expect((await ask(`${product.url}/api/events`, { headers: bearer(key) })).status).toBe(403);
  });

  it('the stream ends when its key is revoked', async () => {
    const { id, key } = await product.call('POST /api/keys', { body: { name: 'looks', role: 'viewer' } });
    const response = await fetch(`${product.url}/api/events`, { headers: bearer(key) });
    await product.call('DELETE /api/keys/{id}', { params: { id } });
    expect(await response.text()).toMatch(/^: following/);
  });

  it('a HEAD request for the stream is answered and ends', async () => {
    const reply = await ask(`${product.url}/api/events`, { method: 'HEAD', headers: bearer(product.rootKey) });
    expect([reply.status, reply.headers['content-type'], reply.text]).toEqual([200, 'text/event-stream', '']);
  });
});

/** Applies a new job and reads up to its event; returns that event's number and what came before it. */
async function readUntilJob(after?: number): Promise<[number, Told[]]> {
  const stream = after === undefined ? await open() : await open(`?after=${after}`);
  if (after === undefined) await stream.until((text) => text.endsWith('\n\n'));
  const job = await makeChain(`mark ${randomUUID()}`, 1);
  const events = await readUntil(stream, (event) => event.subject === job);
  await stream.leave();
  return [events.at(-1)?.id ?? 0, events];
}

function expectCreatedFirst(events: readonly Told[]): void {
  const created = new Set<string | null>();
  for (const event of events.filter(isRun)) {
    if (event.type === 'run.created') created.add(event.subject);
    else expect(created.has(event.subject)).toBe(true);
  }
}
