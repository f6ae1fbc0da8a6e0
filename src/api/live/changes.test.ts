import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readText, type TextStream } from '../../../test/harness/streams.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { append, topics } from '../../events/append.ts';
import { newestPosition } from '../../events/queries.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import type { DigestMessage } from './digest.ts';

let api: TenantApi;
let job: string;
beforeAll(async () => {
  api = await makeTenantApi();
  await api.call('PUT /api/projects', { body: { name: 'p' } });
  const document = JSON.stringify({ project: 'p', name: 'j', tasks: [{ name: 't' }] });
  ({ id: job } = await api.call('PUT /api/jobs', { body: document }));
});
afterAll(() => api.close());

interface Told {
  readonly id: number;
  readonly data: DigestMessage;
}

function read(text: string): Told[] {
  return text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => {
      const [, id = '', data = ''] = /id: (\d+)\ndata: (.*)/.exec(block) ?? [];
      return { id: Number(id), data: JSON.parse(data) as DigestMessage };
    });
}

async function open(query = '', headers: Record<string, string> = {}): Promise<TextStream> {
  const answer = await api.fetch('GET', `/api/changes${query}`, { caller: keyOf('viewer'), headers });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  return readText(answer);
}

/** Waits for the first digest that matches. */
async function first(stream: TextStream, has: (data: DigestMessage) => boolean): Promise<Told> {
  const text = await stream.until((seen) => read(seen).some(({ data }) => has(data)));
  const received = read(text).find(({ data }) => has(data));
  if (received === undefined) throw new Error('unreachable');
  return received;
}

const greeted = (stream: TextStream) => first(stream, () => true);

/** Waits until the first poll has recorded the state: a digest of a later event comes from a later poll. */
async function looked(stream: TextStream): Promise<void> {
  await greeted(stream);
  const other = newId();
  await runEvents(1, () => other);
  await first(stream, ({ jobs }) => jobs?.includes(other) === true);
}

async function runEvents(count: number, jobOf: () => string): Promise<void> {
  const events = Array.from({ length: count }, () => {
    return { type: 'run.finished', subject: newId(), body: { job: jobOf() } };
  });
  await api.db.transaction((tx) =>
    append(tx, topics.millrace_runs, events, { actor: 'worker', at: new Date(api.ctx.time.now()) }),
  );
  api.ctx.hints.send('events');
}

describe('stream of changes', () => {
  it('the stream begins with the latest changes, because the page was read before', async () => {
    const stream = await open();
    expect((await first(stream, (data) => data.written !== undefined)).data).toMatchObject({ written: [job] });
    await stream.leave();
    api.advance(10_000);
  });

  it('the stream sends its position, then the jobs and runs to read again', async () => {
    const stream = await open();
    const start = await greeted(stream);
    expect(start).toEqual({ id: await newestPosition(api.db), data: {} });
    await runEvents(3, () => job);
    const received = await first(stream, (data) => data.jobs !== undefined);
    expect(received.data.jobs).toEqual([job]);
    expect(received.data.runs).toHaveLength(3);
    expect(received.id).toBe(start.id + 3);
    await stream.leave();
  });

  it('the stream reports changes of documents, and actions of people', async () => {
    const stream = await open();
    await greeted(stream);
    const document = JSON.stringify({ project: 'p', name: 'j', description: 'new', tasks: [{ name: 't' }] });
    await api.call('PUT /api/jobs', { body: document });
    const received = await first(stream, (data) => data.written !== undefined);
    expect(received.data).toMatchObject({ written: [job], people: true });
    await stream.leave();
  });

  it('the stream reports a run that a worker took, although there is no event', async () => {
    const { runs } = await api.call('POST /api/jobs/{id}/run', { params: { id: job }, body: {} });
    api.advance(10_000);
    const stream = await open();
    await greeted(stream);
    await api.db.exec(sql`
      update live set worker_id = ${newId()}, incarnation = 1, claimed_at = ${new Date(api.ctx.time.now())}
       where id = ${runs[0] ?? ''}`);
    const received = await first(stream, (data) => data.runs !== undefined);
    expect(received.data).toMatchObject({ jobs: [job], runs });
    // a follower that reconnects while others follow gets it as well
    const other = await open(`?after=${received.id}`);
    expect((await first(other, (data) => data.runs !== undefined)).data).toMatchObject({ jobs: [job], runs });
    await other.leave();
    // given back, also without an event
    await api.db.exec(sql`update live set worker_id = null, incarnation = null, claimed_at = null`);
    expect((await first(stream, (data) => data.runs !== undefined)).data).toMatchObject({ jobs: [job], runs });
    await stream.leave();
    await api.db.exec(sql`delete from live`);
  });

  it('the stream reports changes of the fleet, but no heartbeats', async () => {
    const stream = await open();
    await looked(stream);
    const worker = {
      id: newId(),
      name: 'w',
      addr: 'w',
      version: '1',
      lastSeenAt: new Date(api.ctx.time.now()),
      running: 0,
      places: 4,
      runtimes: ['process'],
      queues: ['default'],
    };
    api.workers.push(worker);
    await first(stream, (data) => data.fleet === true);
    api.workers.splice(0, 1, { ...worker, lastSeenAt: new Date(api.ctx.time.now() + 1) });
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    await runEvents(1, () => job);
    expect((await first(stream, () => true)).data).not.toHaveProperty('fleet');
    await stream.leave();
  });

  it('the stream reports when the scheduler comes and goes, but not its next triggers', async () => {
    const stream = await open();
    await looked(stream);
    const scheduler = {
      id: newId(),
      version: '1',
      lastSeenAt: new Date(api.ctx.time.now()),
      queuedTriggers: 0,
      nextTriggerId: null,
    };
    api.schedulers.push(scheduler);
    await first(stream, (data) => data.scheduler === true);
    api.schedulers.splice(0, 1, { ...scheduler, queuedTriggers: 3 });
    expect((await first(stream, (data) => data.fleet === true)).data).not.toHaveProperty('scheduler');
    api.schedulers.splice(0);
    await first(stream, (data) => data.scheduler === true);
    await stream.leave();
  });

  it('the stream reports when something becomes late, although there is no event', async () => {
    await api.call('POST /api/jobs/{id}/run', { params: { id: job }, body: {} });
    api.advance(10_000);
    const stream = await open();
    await looked(stream);
    api.advance(120_000);
    // together, unless the clock moved during a poll
    const received = read(await stream.until((seen) => read(seen).some(({ data }) => data.late === true)));
    expect(received.some(({ data }) => data.minute === true)).toBe(true);
    await stream.leave();
    await api.db.exec(sql`delete from live`);
  });

  it('the stream resumes where a reader stopped', async () => {
    const before = await newestPosition(api.db);
    await runEvents(2, () => job);
    for (const [query, headers] of [
      [`?after=${before}`, {}],
      ['?after=0', { 'last-event-id': String(before) }],
    ] as const) {
      const stream = await open(query, headers);
      const received = await first(stream, (data) => data.jobs !== undefined);
      expect([received.id, received.data.jobs, received.data.runs?.length]).toEqual([before + 2, [job], 2]);
      await stream.leave();
    }
  });

  it('a reader that missed too much, or is ahead of the log, must read everything again', async () => {
    const before = await newestPosition(api.db);
    await runEvents(6_000, () => job);
    for (const after of [before, before + 1_000_000]) {
      const stream = await open(`?after=${after}`);
      expect((await first(stream, (data) => Object.keys(data).length > 0)).data).toEqual({ all: true });
      await stream.leave();
    }
  });

  it('a digest stays small in a flood of events, and still names a changed document', async () => {
    const stream = await open();
    await greeted(stream);
    await runEvents(2_000, newId);
    await api.call('PUT /api/jobs/{id}/paused', { params: { id: job }, body: { paused: true } });
    await runEvents(2_000, newId);
    let text = '';
    const received: DigestMessage[] = [];
    while (!received.some(({ written }) => written !== undefined) || !received.some(({ many }) => many === true)) {
      text = await stream.until((seen) => read(seen).length > 0 && seen.endsWith('\n\n'));
      expect(text.length).toBeLessThan(10_000);
      received.push(...read(text).map(({ data }) => data));
    }
    await stream.leave();
  });

  it('an invalid position is rejected', async () => {
    const answer = await api.fetch('GET', '/api/changes', {
      caller: keyOf('viewer'),
      headers: { 'last-event-id': 'x' },
    });
    expect(answer.status).toBe(400);
  });
});
