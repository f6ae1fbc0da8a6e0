/** The audit: what people did, newest first, with the names and pages of the subjects. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientOf } from '../../../test/harness/bus-subscribers.ts';
import { refusal } from '../../../test/harness/expected.ts';
import { activate, claim, finish, makeJob, type MadeJob, runAll } from '../../../test/harness/runs.ts';
import { planModes, scansOf, statementsOf } from '../../../test/harness/scans.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newestPosition } from '../../events/queries.ts';
import { sql } from '../../kernel/sql.ts';
import { auditOf } from './handlers.ts';

let api: TenantApi;
let job: MadeJob;
let run: string;
beforeAll(async () => {
  api = await makeTenantApi();
  job = await makeJob(api, { project: 'Shop', name: 'nightly' });
  run = await activate(api, job.tasks['only'], '2026-01-01T00:00:00.000Z');
  await runAll(api);
});
afterAll(() => api.close());

const audit = (query: object = {}) => api.call('GET /api/audit', { query });
const types = async (query: object = {}) => (await audit(query)).items.map(({ type }) => type);

describe('audit', () => {
  it('the audit lists what people did, newest first, with the name and page of the subject', async () => {
    expect((await audit()).items).toMatchObject([
      { type: 'run.created', actor: 'key:operator', name: 'Shop/nightly/only', page: { kind: 'run', id: run } },
      { type: 'job.created', topic: 'millrace_jobs', name: 'Shop/nightly', page: { kind: 'job', id: job.id } },
      { type: 'project.created', name: 'Shop', page: { kind: 'project' }, body: { name: 'Shop', description: '' } },
    ]);
  });

  it('the audit includes machines on request, and can be limited to one actor', async () => {
    expect(await types({ machines: 'true' })).toEqual([
      'run.finished',
      'run.created',
      'job.created',
      'project.created',
    ]);
    expect(await types({ actor: 'worker' })).toEqual(['run.finished']);
    expect(await types({ actor: 'key:operator' })).toHaveLength(3);
    expect(await types({ actor: 'key:nobody' })).toEqual([]);
    await api.as(keyOf('root'))('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: true } });
    expect(await types({ actor: 'key:root', machines: 'true' })).toEqual(['job.paused']);
    await api.call('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused: false } });
  });

  it('the audit can be limited to a topic, and rejects an unknown one', async () => {
    expect(await types({ topic: 'millrace_projects' })).toEqual(['project.created']);
    expect(await types({ topic: 'millrace_projects', machines: 'true' })).toEqual(['project.created']);
    expect(await types({ topic: 'millrace_runs' })).toEqual(['run.created']);
    expect(await types({ topic: 'millrace_runs', machines: 'true' })).toEqual(['run.finished', 'run.created']);
    await expect(audit({ topic: 'none' })).rejects.toEqual(refusal(400));
  });

  it('pages of the audit list each event once', async () => {
    const all = (await audit({ limit: 1000 })).items.map(({ seq }) => seq);
    const seen: number[] = [];
    let before: number | undefined;
    do {
      const page = await audit({ limit: 2, before });
      seen.push(...page.items.map(({ seq }) => seq));
      before = page.next ?? undefined;
    } while (before !== undefined);
    expect(seen).toEqual(all);
    expect(seen.length).toBeGreaterThan(3);
  });

  it('the audit names the user who cancelled a running run', async () => {
    const id = await activate(api, job.tasks['only'], '2026-01-02T00:00:00.000Z');
    const runs = await claim(api);
    await api.call('POST /api/runs/{id}/cancel', { params: { id } });
    await finish(api, runs, 'failure');
    expect((await audit({ limit: 1 })).items).toMatchObject([
      { type: 'run.cancel_wished', actor: 'key:operator', page: { kind: 'run', id } },
    ]);
  });

  it('the audit names the stash and the entry that was written', async () => {
    const page = (await audit({ topic: 'millrace_projects' })).items.at(-1)?.page;
    const id = page?.id ?? '';
    await api.call('PUT /api/stash/{key}', { params: { key: 'token' }, body: Buffer.from('x') });
    await api.call('PUT /api/projects/{id}/stash/{key}', { params: { id, key: 'a/b' }, body: Buffer.from('x') });
    expect((await audit({ limit: 2 })).items).toMatchObject([
      { type: 'stash.written', subject: id, name: 'Shop/stash/a/b', page: { kind: 'project', id } },
      { type: 'stash.written', subject: null, name: 'stash/token', page: null },
    ]);
  });

  it('a subscriber has its name and page while it exists, and its name afterwards', async () => {
    const topics = sql`insert into bus_topic (name, owner_name, created_at) values ('orders', 'tests', ${new Date()})`;
    await api.db.exec(topics);
    const call = api.as(clientOf('billing'));
    await call('POST /bus/subscription', { body: { topics: ['orders'], kind: 'pull', timeout: 0 } });
    const { id, subscriber: name } = await call('GET /bus/subscriber', {});
    const [created] = (await audit({ limit: 1 })).items;
    expect(created).toMatchObject({ type: 'subscriber.created', name, page: { kind: 'subscriber', id } });
    await api.call('DELETE /bus/subscribers/{id}', { params: { id } });
    const [deleted] = (await audit({ limit: 1 })).items;
    expect(deleted).toMatchObject({ type: 'subscriber.deleted', name, page: null });
  });

  it('a deleted subject has a name without a page, and a forgotten one has the name in its event', async () => {
    const gone = await makeJob(api, { project: 'Old', name: 'gone' });
    const forgotten = await activate(api, gone.tasks['only'], '2026-01-01T00:00:00.000Z');
    await runAll(api);
    await api.call('DELETE /api/jobs/{id}', { params: { id: gone.id } });
    await api.db.exec(sql`delete from run where id = ${forgotten}`);
    const [deleted, created] = (await audit({ limit: 2 })).items;
    expect(deleted).toMatchObject({ type: 'job.deleted', name: 'Old/gone', page: null });
    expect(created).toMatchObject({ type: 'run.created', subject: forgotten, name: null, page: null });
  });
});

describe('audit among very many events of machines', () => {
  it('a page reads events of people by their index, and a filter scans a bounded range', async () => {
    const first = await newestPosition(api.db);
    await api.db.exec(sql`
      insert into event (seq, topic_id, type, subject, actor, at, body)
      select nextval('event_seq'), 3, 'run.finished', gen_random_uuid(), 'worker', ${new Date()}, '{}'
        from generate_series(1, 12000)`);
    await api.pool.query('analyze event');
    const query = { limit: 5, before: undefined, actor: undefined, topic: undefined, machines: false };
    const request = new Request('http://tenant');
    const { signal } = request;
    const rest = { params: undefined, body: undefined, caller: keyOf('viewer'), request, signal };
    const statements = await statementsOf(api.db, (db) => auditOf({ ...rest, query }, { ...api.ctx, db }));
    const tables = new Set(['event']);
    for (const mode of planModes) {
      const scans = (await Promise.all(statements.map((each) => scansOf(api.pool, tables, each, mode)))).flat();
      expect(scans.map(({ type }) => type)).not.toContain('Seq Scan');
      expect(scans.reduce((sum, { read }) => sum + read, 0)).toBe(6);
    }
    const cut = await audit({ actor: 'scheduler' });
    expect(cut.items).toEqual([]);
    expect(cut.next).toBeGreaterThan(first);
    expect((await audit({ actor: 'scheduler', before: cut.next ?? 0 })).next).toBeNull();
  });
});
