/**
 * Hosts that die while they drop the oldest events of a bus that is over its limit. Each piece is dropped whole, once, and with an
 * exact report, or not at all.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkpoints } from '../../src/app/checkpoints.ts';
import { sql } from '../../src/kernel/sql.ts';
import { basic, publishSurely } from '../harness/bus-client.ts';
import { until } from '../harness/until.ts';
import { dieAtEach, type Dying } from './crash-walk.ts';
import { makeDice } from './dice.ts';
import { ChaosInstallation } from './installation.ts';

const limit = 1_048_576;
const patienceMs = 60_000;
const batches = 24;
const event = { type: 'update', url: 'https://shop.example/orders/1', data: { text: 'x'.repeat(1_000) } };
const events = batches * 100;

let walk: Dying & { readonly installation: ChaosInstallation };
beforeAll(async () => {
  const env = { MILLRACE_BUS_MAX_BYTES: String(limit) };
  const installation = await ChaosInstallation.start({ hosts: 1, workers: 0, leaseMs: 3_000, env });
  walk = { installation, options: { passages: 1 }, dice: makeDice(1), died: new Set(), faults: [] };
}, 120_000);
afterAll(() => walk?.installation.close());

/** Nothing delivers: there is no courier. */
async function publishAll(): Promise<void> {
  const { call, url, db } = walk.installation;
  const { key } = await call('POST /api/keys', { body: { name: 'shop', role: 'client', tenant: 'default' } });
  const body = JSON.stringify({ topics: ['orders'], callback: 'https://shop.example/hook', timeout: 0 });
  const subscribed = await fetch(`${url}/bus/subscription`, {
    method: 'POST',
    headers: { authorization: basic(key) },
    body,
  });
  expect(subscribed.status).toBe(204);
  // as the first look of retention does
  await db.exec(sql`update bus_state set piece_bytes = 131072`);
  for (let i = 0; i < batches; i++)
    await publishSurely({
      base: url,
      key,
      topic: 'orders',
      events: Array.from({ length: 100 }, () => event),
      idempotencyKey: `batch ${i}`,
    });
}

async function bytesOfLog(): Promise<number> {
  const { bytes } = await walk.installation.db.one<{ bytes: number }>(sql`
    select sum(pg_total_relation_size(inhrelid))::float8 as bytes from pg_inherits where inhparent = 'bus_event'::regclass`);
  return bytes;
}

interface Found {
  readonly letters: readonly { readonly first: number; readonly last: number; readonly events: number }[];
  readonly recorded: readonly { readonly events: number; readonly last: number }[];
  readonly left: number;
}

it('a host that dies at any moment of a drop leaves the piece whole, or reports it exactly', {
  timeout: 400_000,
}, async () => {
  const { db, hosts } = walk.installation;
  await publishAll();
  expect(await bytesOfLog()).toBeGreaterThan(3 * limit);
  await dieAtEach(walk, hosts, checkpoints.drop);
  expect(walk.faults).toEqual([]);
  await until('the log is within its limit', async () => (await bytesOfLog()) <= limit || undefined, patienceMs);
  // in one statement, because a further piece may be dropped at any time
  const { letters, recorded, left } = await db.one<Found>(sql`
    select (select json_agg(json_build_object('first', first_seq, 'last', last_seq, 'events', events) order by first_seq)
              from dead_letter where code = 'dropped') as letters,
           (select json_agg(json_build_object('events', (body::jsonb ->> 'events')::integer, 'last', (body::jsonb ->> 'last')::bigint) order by seq)
              from event where type = 'bus.dropped' and subject is not null) as recorded,
           (select count(*) from bus_event where topic_id = 1) as left`);
  // one gap after the other, without an overlap
  expect(letters.length).toBeGreaterThanOrEqual(checkpoints.drop.length);
  expect(letters.map(({ first }) => first)).toEqual([1, ...letters.slice(0, -1).map(({ last }) => last + 1)]);
  expect(letters.reduce((sum, letter) => sum + letter.events, 0) + left).toBe(events);
  // each drop is recorded in its commit, and once
  expect(recorded).toEqual(letters.map((letter) => ({ events: letter.events, last: letter.last })));
});
