/** Answer links at the gateway: the token finds the tenant, forged ones cost nothing, and browsers of other origins are kept out. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { inboxOf, makeExecution } from '../../../test/harness/node-runs.ts';
import { makeItem } from '../../../test/harness/workitems.ts';
import { makeAnswerToken } from '../../flows/answer-token.ts';
import { makeSecrets } from '../access/secrets.ts';
import { type Db, onPool, sql } from '../../kernel/sql.ts';
import { newId } from '../../kernel/id.ts';

let fleet: Fleet;
let gateway: TestGateway;
beforeAll(async () => {
  fleet = await makeFleet(['default', 'b']);
  gateway = makeTestGateway(fleet);
});
afterAll(() => fleet.close());

const at = (): Date => new Date(fleet.time.now());

interface Asked {
  readonly execution: string;
  readonly token: string;
  readonly db: Db;
}

/** A human task of tenant b. */
async function ask(): Promise<Asked> {
  const row = fleet.tenants[1]?.row;
  if (row === undefined) throw new Error('there is no tenant b');
  const { ctx } = await fleet.loader.open(row);
  const db = onPool(ctx.pool);
  const execution = await makeExecution(db, at());
  await makeItem(db, at(), { execution });
  const claims = { tenantId: row.id, execution, nid: '0_1-2', attempt: 1 };
  return { execution, db, token: makeAnswerToken(gateway.secrets, claims, fleet.time.now()) };
}

async function refusals(): Promise<number> {
  await gateway.context.rejectedCredentials.endPeriod();
  const { n } = await fleet.control.db.one<{ n: number }>(sql`
    select coalesce(sum((body::jsonb ->> 'count')::integer), 0)::integer as n from event where type = 'link.refused'`);
  return n;
}

describe('a genuine link', () => {
  it('is answered by the tenant that it names, without a key, and is kept by no cache', async () => {
    const { token, execution, db } = await ask();
    const shown = await gateway.fetch('GET', `/answers/${token}`);
    expect([shown.status, shown.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(shown.headers.get('referrer-policy')).toBe('no-referrer');
    expect(await shown.json()).toMatchObject({ title: 'Expense e1', name: 'approve' });
    expect((await gateway.fetch('POST', `/answers/${token}`, {}, { approved: true })).status).toBe(202);
    expect(await inboxOf(db, execution)).toHaveLength(1);
    expect((await gateway.fetch('POST', `/answers/${token}`, {}, { approved: true })).status).toBe(410);
  });

  it.each([
    ['of another tenant', async () => ({ authorization: `Bearer ${await gateway.key('operator', 'default')}` })],
    ['that does not exist', async () => ({ authorization: 'Bearer mrk_nonsense-nonsense-nonsense' })],
  ])('does not look at a key %s', async (_, headers) => {
    const { token } = await ask();
    expect((await gateway.fetch('GET', `/answers/${token}`, await headers())).status).toBe(200);
  });

  it('cannot be used by pages of other origins, and has no CORS headers', async () => {
    const { token } = await ask();
    const foreign = { origin: 'https://evil.example' };
    expect((await gateway.fetch('POST', `/answers/${token}`, foreign, {})).status).toBe(403);
    const shown = await gateway.fetch('GET', `/answers/${token}`, foreign);
    expect([...shown.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect((await gateway.fetch('OPTIONS', `/answers/${token}`, foreign)).status).toBe(405);
    expect((await gateway.fetch('POST', `/answers/${token}`, { origin: 'http://127.0.0.1' }, {})).status).toBe(202);
  });

  it('takes JSON of at most 256 KiB', async () => {
    const { token } = await ask();
    const long = { comment: 'x'.repeat(256 * 1024) };
    expect((await gateway.fetch('POST', `/answers/${token}`, {}, long)).status).toBe(413);
    const text = { 'content-type': 'text/plain' };
    expect((await gateway.fetch('POST', `/answers/${token}`, text, {})).status).toBe(415);
    expect((await gateway.fetch('DELETE', `/answers/${token}`)).status).toBe(405);
    const some = { comment: 'x'.repeat(200 * 1024) };
    expect((await gateway.fetch('POST', `/answers/${token}`, {}, some)).status).toBe(202);
  });

  it('of a tenant that was deleted is not found', async () => {
    const claims = { tenantId: newId(), execution: newId(), nid: '0', attempt: 1 };
    const token = makeAnswerToken(gateway.secrets, claims, fleet.time.now());
    expect((await gateway.fetch('GET', `/answers/${token}`)).status).toBe(404);
  });
});

it('a forged link is not found, whatever its body, and is counted with the rejected credentials', async () => {
  const { execution } = await ask();
  const claims = { tenantId: fleet.tenants[1]?.row.id ?? '', execution, nid: '0_1-2', attempt: 1 };
  const forged = makeAnswerToken(
    makeSecrets(['another key'], () => 0),
    claims,
    fleet.time.now(),
  );
  const before = await refusals();
  for (const token of [forged, 'mra_x', 'x', '%00', '%ff', 'mra_e30.'])
    expect((await gateway.fetch('GET', `/answers/${token}`)).status).toBe(404);
  expect((await gateway.fetch('POST', `/answers/${forged}`, {}, { long: 'x'.repeat(1024 * 1024) })).status).toBe(404);
  expect(await refusals()).toBe(before + 7);
});

it('a browser gets a page and no JSON, whatever the link', async () => {
  const { token } = await ask();
  const page = { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' };
  // the test has no built pages
  const answers = await Promise.all([token, 'forged'].map((each) => gateway.fetch('GET', `/answers/${each}`, page)));
  for (const answer of answers)
    expect(await answer.json()).toMatchObject({ detail: 'there is no page at /index.html' });
});

it('a fault is logged without the token', async () => {
  const { token } = await ask();
  const logged: unknown[] = [];
  const log = { ...gateway.context.log, error: (fields: unknown) => void logged.push(fields) };
  const broken = { byId: () => Promise.reject(new Error('broken')) };
  Object.assign(gateway.context, { log, loader: broken });
  const answer = await gateway.fetch('GET', `/answers/${token}`);
  expect(answer.status).toBe(500);
  expect(logged).toHaveLength(1);
  expect(JSON.stringify(logged)).toContain('/answers/…');
  expect(JSON.stringify([logged, await answer.text()])).not.toContain(token.slice(4, 20));
});
