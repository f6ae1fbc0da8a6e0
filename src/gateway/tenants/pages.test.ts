/** Lists of the installation come in pages, and reading all pages gives the whole list. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callEndpoint, insertHost, insertLaunch } from '../../../test/harness/tenant-calls.ts';
import { makeTestLife, type TestLife } from '../../../test/harness/tenant-life.ts';
import { findWorker, seenWorkers, workerPage } from '../../control/queries.ts';
import { engine, engineVersion } from '../../engine/engine.ts';
import { collectPages } from '../../http/client.ts';
import { newId, nilId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { insertTenant } from '../../tenants/queries.ts';

const count = 5;

let life: TestLife;
let names: string[];
let hosts: string[];
beforeAll(async () => {
  life = await makeTestLife([engine]);
  await life.launcher.stop();
  const made = Array.from({ length: count }, () => ({ id: newId(), name: life.name() }));
  names = made.map(({ name }) => name).sort();
  hosts = [];
  for (const { id, name } of made) {
    await insertTenant(life.control, { id, name, database: name, ownHost: false, at: new Date() });
    await insertLaunch(life, id, {
      version: engineVersion,
      reason: { code: 'starting', cause: 'other', data: { text: 'x'.repeat(150_000) } },
    });
    hosts.push(await insertHost(life));
    const granted = hosts.length > 2 ? new Date() : null;
    await life.control.exec(sql`
      insert into slot (id, kind, tenant_id, reason, asked_at, granted_at)
      values (${newId()}, 'scheduler', ${id}, 'to run', clock_timestamp(), ${granted})`);
  }
});
afterAll(() => life.close());

interface Answer {
  readonly items: readonly Record<string, unknown>[];
  readonly next: string | null;
}

/** Reads the list a few items at a time. Returns all items and the number of pages. */
async function readAll(path: string, limit: number, field = 'items'): Promise<{ all: unknown[]; pages: number }> {
  let pages = 0;
  const all = await collectPages<unknown>(async (cursor) => {
    pages += 1;
    const query = new URLSearchParams({ limit: String(limit), ...(cursor === undefined ? {} : { cursor }) });
    const { json, status } = await callEndpoint(life, `GET ${path}?${query}`);
    expect(status).toBe(200);
    const page = json as unknown as Answer & Record<string, Answer['items']>;
    return { items: page[field] ?? [], next: page.next };
  });
  return { all, pages };
}

describe('list of tenants', () => {
  it('a page of tenants has as many items as requested', async () => {
    const { all, pages } = await readAll('/api/tenants', 2);
    expect(all.map((each) => (each as { name: string }).name)).toEqual(expect.arrayContaining(names));
    expect(pages).toBe(Math.ceil(all.length / 2));
  });

  it('a page of tenants has fewer items if reasons are very long', async () => {
    const answer = await callEndpoint(life, 'GET /api/tenants');
    const { items, next } = answer.json as unknown as Answer;
    expect(answer.text.length).toBeLessThan(2 * 1024 * 1024);
    expect(items.length).toBeLessThan(count);
    expect(next).toBe(items.at(-1)?.['name']);
    expect((await readAll('/api/tenants', 1_000)).all).toHaveLength((await readAll('/api/tenants', 1)).all.length);
  });
});

describe('other lists', () => {
  it('the list of slots has taken slots, then waiting ones, and counts all on every page', async () => {
    const whole = (await callEndpoint(life, 'GET /api/slots')).json as unknown as Answer & {
      taken: number;
      waiting: number;
    };
    const { all } = await readAll('/api/slots', 1);
    expect(all).toEqual(whole.items);
    expect(whole.taken + whole.waiting).toBe(whole.items.length);
    expect((await callEndpoint(life, 'GET /api/slots?limit=1')).json).toMatchObject({
      taken: whole.taken,
      waiting: whole.waiting,
    });
    expect((await callEndpoint(life, 'GET /api/slots?cursor=nonsense')).status).toBe(400);
  });

  it('the pages of hosts are complete', async () => {
    const { all } = await readAll('/api/launcher', 2, 'hosts');
    expect(all.map((host) => (host as { id: string }).id)).toEqual(expect.arrayContaining(hosts));
  });

  it('the list of engines names some tenants of an engine and counts all', async () => {
    const { items } = (await callEndpoint(life, 'GET /api/engines')).json as unknown as Answer;
    const own = items.find(({ version }) => version === engineVersion);
    expect(own?.['tenant_count']).toBeGreaterThanOrEqual(count);
  });
});

describe('list of workers', () => {
  const since = new Date(0);
  const insert = async (name: string, queues: readonly string[]): Promise<string> => {
    const id = newId();
    await life.control.exec(sql`
      insert into worker (id, incarnation, name, addr, version, places, running, runtimes, queues, first_seen_at, beat_at)
      values (${id}, 1, ${name}, '', '', 1, 0, '{}', ${queues}, clock_timestamp(), clock_timestamp())`);
    return id;
  };

  it('the pages of workers are complete, although one answer has at most a megabyte', async () => {
    const large = Array.from({ length: 100 }, (_, i) => String(i).padEnd(200, 'q'));
    const ids = new Set<string>();
    for (let i = 0; i < 120; i += 1) ids.add(await insert(`w${i % 7}`, large));
    const first = await workerPage(life.control, nilId, { since, cursor: undefined, limit: 1_000 });
    expect(first.workers.length).toBeLessThan(ids.size);
    expect(JSON.stringify(first.workers).length).toBeLessThan(2 * 1024 * 1024);
    const all = await collectPages(async (cursor) => {
      const { workers, next } = await workerPage(life.control, nilId, { since, cursor, limit: 40 });
      return { items: workers, next };
    });
    expect(new Set(all.map(({ id }) => id))).toEqual(ids);
    expect(all).toHaveLength(ids.size);
    expect(JSON.stringify(await seenWorkers(life.control, nilId, since)).length).toBeLessThan(2 * 1024 * 1024);
    const [last] = [...ids].slice(-1);
    expect(await findWorker(life.control, nilId, last ?? '')).toMatchObject({ id: last });
    await expect(workerPage(life.control, nilId, { since, cursor: 'nonsense', limit: 1 })).rejects.toMatchObject({
      code: 'bad_request',
    });
  });
});
