import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { activate, claim, type ClaimedRow, finish, makeJob } from '../../../test/harness/runs.ts';
import { readText } from '../../../test/harness/streams.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

async function startRun(): Promise<ClaimedRow> {
  const job = await makeJob(api);
  await activate(api, job.tasks['only'], '2026-01-01T00:00:00Z');
  const [run] = await claim(api);
  if (run === undefined) throw new Error('nothing to claim');
  return run;
}

async function write(run: ClaimedRow, number: number, text: string, lease = run.lease): Promise<void> {
  await api.db.exec(sql`
    insert into log (run_id, lease, number, stream, at, data)
    values (${run.id}, ${lease}, ${number}, ${number % 2 === 0 ? 'out' : 'err'}, ${new Date()}, ${Buffer.from(text)})`);
  api.ctx.hints.send('logs');
}

const open = (run: string, query = '') =>
  api.fetch('GET', `/api/runs/${run}/logs${query}`, { caller: keyOf('viewer') });

describe('log of a run', () => {
  it('a log is plain text: both streams in order, hand-outs one after another', async () => {
    const run = await startRun();
    await write(run, 0, 'again\n', 2);
    await write(run, 1, 'two\n');
    await write(run, 0, 'one\n');
    await write(run, 2, 'three é\n');
    const answer = await open(run.id);
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(await answer.text()).toBe('one\ntwo\nthree é\nagain\n');
    await finish(api, [run]);
    expect(await (await open(run.id)).text()).toBe('one\ntwo\nthree é\nagain\n');
  });

  it('a log can be read from a byte position, followed or not', async () => {
    const run = await startRun();
    await write(run, 0, 'one\n');
    await write(run, 1, 'two\n');
    await write(run, 0, 'again\n', 2);
    const all = 'one\ntwo\nagain\n';
    const followed = readText(await open(run.id, '?follow=true&from=6'));
    expect(await followed.until((text) => text.endsWith('again\n'))).toBe('o\nagain\n');
    await followed.leave();
    await finish(api, [run]);
    for (const from of [0, 1, 4, 5, 8, 13, 14, 99]) {
      expect(await (await open(run.id, `?from=${from}`)).text()).toBe(all.slice(from));
      expect(await (await open(run.id, `?follow=true&from=${from}`)).text()).toBe(all.slice(from));
    }
    expect((await open(run.id, '?from=-1')).status).toBe(400);
  });

  it('the log of a run without output is empty', async () => {
    const run = await startRun();
    expect(await (await open(run.id)).text()).toBe('');
    await finish(api, [run]);
  });

  it('a long log is sent in pieces', async () => {
    const run = await startRun();
    await api.db.exec(sql`
      insert into log (run_id, lease, number, stream, at, data)
      select ${run.id}, 1, n, 'out', ${new Date()}, convert_to(repeat(chr(97 + n % 26), 65536), 'UTF8')
        from generate_series(0, 99) as n`);
    const sizes: number[] = [];
    const body: AsyncIterable<Uint8Array> = (await open(run.id)).body ?? new ReadableStream<Uint8Array>();
    for await (const chunk of body) sizes.push(chunk.byteLength);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(100 * 65_536);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_048_576 + 65_536);
    await finish(api, [run]);
  });

  it('the log of an unknown run is not found', async () => {
    expect((await open(newId())).status).toBe(404);
    expect((await open(newId(), '?follow=perhaps')).status).toBe(400);
  });
});

describe('following a log', () => {
  it('a followed log sends output as it is written, and ends with the run', async () => {
    const run = await startRun();
    await write(run, 0, 'before\n');
    const stream = readText(await open(run.id, '?follow=true'));
    expect(await stream.until((text) => text.endsWith('\n'))).toBe('before\n');
    await write(run, 1, 'while\n');
    expect(await stream.until((text) => text.endsWith('\n'))).toBe('while\n');
    await write(run, 2, 'last\n');
    await finish(api, [run]);
    api.ctx.hints.send('events');
    expect(await stream.rest()).toBe('last\n');
  });

  it('a followed log finds output without a wake-up', async () => {
    const run = await startRun();
    const stream = readText(await open(run.id, '?follow=true'));
    const rest = stream.rest();
    await api.db.exec(sql`
      insert into log (run_id, lease, number, stream, at, data)
      values (${run.id}, 1, 0, 'out', ${new Date()}, ${Buffer.from('quiet')})`);
    await finish(api, [run]);
    expect(await rest).toBe('quiet');
  });

  it('a followed log waits for a queued run', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], '2026-01-01T00:00:00Z');
    const rest = readText(await open(id, '?follow=true')).rest();
    const [run] = await claim(api);
    if (run === undefined) throw new Error('nothing to claim');
    await write(run, 0, 'started');
    await finish(api, [run]);
    expect(await rest).toBe('started');
  });

  it('a followed log of an ended run ends at once', async () => {
    const run = await startRun();
    await write(run, 0, 'all');
    await finish(api, [run]);
    expect(await (await open(run.id, '?follow=true')).text()).toBe('all');
  });

  it('a followed log stops listening when the client disconnects', async () => {
    const run = await startRun();
    const listening: string[] = [];
    const { hints } = api.ctx;
    const on = hints.on.bind(hints);
    hints.on = (kind, listener) => {
      listening.push(kind);
      const off = on(kind, listener);
      return () => {
        listening.splice(listening.indexOf(kind), 1);
        off();
      };
    };
    await write(run, 0, 'hello');
    const stream = readText(await open(run.id, '?follow=true'));
    await stream.until((text) => text !== '');
    expect(listening).toEqual(['logs', 'events']);
    await stream.leave();
    expect(listening).toEqual([]);
    hints.on = on;
    await finish(api, [run]);
  });
});
