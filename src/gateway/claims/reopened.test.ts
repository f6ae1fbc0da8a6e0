/** Streams of a tenant that this gateway closes, as for an upgrade: they end, and clients that reconnect are served again. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet, type TestTenant } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { readText, type TextStream } from '../../../test/harness/streams.ts';

let fleet: Fleet;
let a: TestTenant;
let gateway: TestGateway;
let headers: Record<string, string>;
beforeAll(async () => {
  fleet = await makeFleet(['a']);
  [a] = fleet.tenants as [TestTenant];
  gateway = makeTestGateway(fleet);
  headers = { authorization: `Bearer ${await gateway.key('operator', 'a')}` };
});
afterAll(() => fleet.close());

async function open(path: string, more: Record<string, string> = {}): Promise<TextStream> {
  const answer = await gateway.fetch('GET', `/t/a${path}`, { ...headers, ...more });
  expect(answer.status).toBe(200);
  return readText(answer);
}

const makeProject = (name: string) =>
  gateway.fetch('PUT', '/t/a/api/projects', headers, { name: name.replaceAll('/', ' ') });

it.each(['/api/changes', '/api/events'])(
  'the stream %s ends, and a new one continues from its position',
  async (path) => {
    const stream = await open(path);
    await stream.until((text) => text.includes('retry:'));
    await makeProject(`before ${path}`);
    const text = await stream.until((seen) => /id: \d+\ndata: .*"(projects?|type)"/.test(seen));
    const position = [...text.matchAll(/id: (\d+)/g)].at(-1)?.[1] ?? '';
    await fleet.loader.close(a.row.id);
    await stream.rest();
    expect((await makeProject(`while ${path}`)).status).toBe(201);
    const again = await open(path, { 'last-event-id': position });
    await again.until((seen) => /id: \d+\ndata: .*"(projects?|type)"/.test(seen));
    await makeProject(`after ${path}`);
    await again.until((seen) => seen.includes('data: {"'));
    await again.leave();
  },
);

it('many streams end together and reconnect, several times', async () => {
  for (let round = 0; round < 3; round++) {
    const streams = await Promise.all(Array.from({ length: 10 }, () => open('/api/changes')));
    await Promise.all(streams.map((stream) => stream.until((text) => text.includes('id: '))));
    await fleet.loader.close(a.row.id);
    await Promise.all(streams.map((stream) => stream.rest()));
  }
});

it('a followed log is cut off with an error, so that it is not mistaken for complete', async () => {
  const [run] = await a.ready(1);
  const stream = await open(`/api/runs/${run}/logs?follow=true`);
  const ended = stream.rest();
  const outcome = Promise.allSettled([ended]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await fleet.loader.close(a.row.id);
  expect((await outcome)[0]?.status).toBe('rejected');
});

it('a request during the closing gets an answer that it can retry, not an error', async () => {
  const closing = new Set<number>();
  for (let i = 0; i < 8; i++) {
    const asking = Array.from({ length: 5 }, () => gateway.fetch('GET', '/t/a/api/projects', headers));
    await new Promise((resolve) => setImmediate(resolve));
    await fleet.loader.close(a.row.id);
    for (const answer of await Promise.all(asking)) closing.add(answer.status);
  }
  expect([...closing].filter((status) => status !== 200 && status !== 503)).toEqual([]);
});
