import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Broken, Importing, outcomesOf } from '../../../../test/harness/cli/importing.ts';
import { fillInstallation, type Installation } from '../../../../test/harness/waterwheel-database.ts';
import { sql } from '../../../kernel/sql.ts';
import type { ImportReport } from './import-report.ts';

let on: Importing;
beforeEach(async () => {
  on = await Importing.start();
});
afterEach(() => on.stop());

describe('import of an installation', () => {
  let made: Installation;
  beforeEach(async () => {
    made = await fillInstallation(on.source);
  });

  it('a dry run reports what the import then does, and writes nothing', async () => {
    const before = await on.contents();
    const dry = await on.report('--dry-run');
    expect([await on.contents(), await on.countEvents()]).toEqual([before, 0]);
    const real = await on.report();
    const plain = ({ jobs, ...rest }: ImportReport): object => ({
      ...rest,
      dry_run: true,
      waterwheel: null,
      jobs: jobs.map((job) => ({ ...job, outlook: null })),
    });
    expect(plain(real)).toEqual(plain(dry));
    expect(real.conflicts).toBe(0);
    expect(new Set(Object.values(outcomesOf(real)))).toEqual(new Set(['created']));
    const first = dry.jobs.find(({ name }) => name === 'nightly')?.outlook?.triggers[0];
    expect(first).toMatchObject({
      name: 'hourly',
      caught_up: { first: expect.arrayContaining([made.hour(2), made.hour(1)]) as unknown },
    });
  });

  it('what is imported is what Waterwheel has, and all of it is paused', async () => {
    await on.report();
    const rows = (await on.contents()) as { kind: string; name: string; what: string | null; at: Date | null }[];
    const of = (kind: string): (string | undefined)[][] =>
      rows.filter((row) => row.kind === kind).map(({ name, what, at }) => [name, what ?? '', at?.toISOString() ?? '']);
    expect(of('token').map(([name, what, at]) => [name, what, at])).toEqual([
      ['a follower/second', '1false', made.hour(24 * 86)],
      // cancelled in Waterwheel because of the pause: full again, and held
      ['asleep/nap', '1true', made.hour(100)],
      ['join/both', '1false', made.hour(1)],
      ['join/both', '1false', made.hour(0)],
      ['past/work', '1false', made.hour(24 * 85)],
    ]);
    const marks = of('trigger').map(([name, , latest]) => [name, latest]);
    expect(marks).toContainEqual(['nightly/hourly', made.hour(3)]);
    expect(marks).toContainEqual(['clocks/new', '']);
    expect(marks).not.toContainEqual(['nightly/forgotten', expect.anything()]);
    expect(of('job')).toHaveLength(9);
    expect(of('job').every(([, what]) => what?.includes('true'))).toBe(true);
    expect(of('edge')).toEqual(
      expect.arrayContaining([
        ['back', 'theresuccess3600000', ''],
        ['there', 'backsuccess0', ''],
        ['export', 'firstsuccess0', ''],
      ]),
    );
    const { secrets, db } = on.tenant.ctx;
    const sealed = await db.one<{ data: Buffer }>(sql`select data from project_stash where name = 'pem'`);
    expect(secrets.decrypt(sealed.data)).toEqual(Buffer.from([0, 255]));
    expect(sealed.data.length).toBeGreaterThan(2);
    expect(await on.tenant.call('GET /api/projects/{id}/config', { params: { id: made.shop } })).toEqual({
      kubernetes_pod_merge: { a: 1 },
    });
  });

  it('a second import changes nothing, and says so', async () => {
    await on.report();
    const [before, eventsBefore] = [await on.contents(), await on.countEvents()];
    const ran = await on.run();
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('nothing to change')]);
    expect([await on.contents(), await on.countEvents()]).toEqual([before, eventsBefore]);
  });

  it('a start that breaks before or after its commit is completed by the next one, and each retry waits once', async () => {
    await on.source.schedulerSeen(3_600);
    await on.report();
    for (const when of ['before', 'after'] as const) {
      on.onImport = (at, path) => {
        if (at === when && path.endsWith('/start')) throw new Broken();
      };
      expect((await on.run('--start')).code).toBe(1);
    }
    on.onImport = undefined;
    expect((await on.report('--start')).start).toEqual({ started: [], paused: [], retries: 1 });
    const rows = (await on.contents()) as { kind: string; name: string; what: string }[];
    expect(rows.filter(({ kind }) => kind === 'retry')).toMatchObject([{ name: made.retried, what: '3normal' }]);
    expect(rows.filter(({ kind, what }) => kind === 'job' && what.includes('asleep'))).toMatchObject([
      { what: 'asleep1truefalsetrue' },
    ]);
    expect(rows.filter(({ kind, what }) => kind === 'job' && what.includes('nightly'))).toMatchObject([
      { what: 'nightly1falsetruetrue' },
    ]);
  });

  it('what happens in Waterwheel until the start is taken over, and which jobs resume is not changed by the pause of all', async () => {
    await on.report();
    await on.source.db.exec(sql`
      update trigger set latest_trigger_datetime = ${made.hour(2)} where job_id = ${made.jobs.nightly} and name = 'hourly'`);
    await on.source.token(made.jobs.join, 'both', made.hour(1), { count: 0, state: 'success' });
    await on.source.token(made.jobs.nightly, 'load', made.hour(2), { count: 1 });
    await on.source.pauseAll();
    const again = await on.report();
    expect(outcomesOf(again)).toMatchObject({
      'shop/nightly': 'changed',
      'shop/join': 'changed',
      'shop/clocks': 'unchanged',
    });
    const { start } = await on.report('--start');
    expect(start?.started).toHaveLength(8);
    expect(start?.paused).toEqual(['ops/asleep']);
    const rows = (await on.contents()) as { kind: string; name: string; at: Date | null }[];
    const tokens = rows.filter(({ kind }) => kind === 'token').map(({ name, at }) => [name, at?.toISOString()]);
    expect(tokens).toContainEqual(['nightly/load', made.hour(2)]);
    expect(tokens).not.toContainEqual(['join/both', made.hour(1)]);
  });

  it('--start is refused while Waterwheel fires, and while its runs are under way', async () => {
    await on.source.schedulerSeen(5);
    const firing = await on.run('--start');
    expect([firing.code, firing.stderr]).toEqual([1, expect.stringContaining('Waterwheel still fires')]);
    await on.source.schedulerSeen(61);
    await on.source.token(made.jobs.nightly, 'export', made.hour(3), { state: 'running' });
    const busy = await on.run('--start');
    expect([busy.code, busy.stderr]).toEqual([
      1,
      expect.stringContaining(`shop/nightly/task/export: runs for ${made.hour(3)}`),
    ]);
    expect(await on.tenant.db.rows(sql`select 1 from job`)).toEqual([]);
    const left = await on.report('--start', '--under-way', 'leave', '--dry-run');
    expect(left.start?.started).toContain('shop/nightly');
    await on.report('--start', '--under-way', 'again');
    const rows = (await on.contents()) as { kind: string; name: string; what: string }[];
    expect(rows).toContainEqual(expect.objectContaining({ kind: 'token', name: 'nightly/export', what: '1true' }));
  });

  it('what was changed here is reported by name and left alone, unless it is to be overwritten', async () => {
    await on.report();
    const edited = { uuid: made.jobs.flaky, project: 'ops', name: 'flaky', tasks: [{ name: 'other' }] };
    await on.tenant.call('PUT /api/jobs', { body: JSON.stringify(edited) });
    await on.tenant.call('PUT /api/projects', { body: { uuid: made.shop, name: 'shop', description: 'mine' } });
    const params = { id: made.shop, key: 'db-password' };
    await on.tenant.call('PUT /api/projects/{id}/stash/{key}', { params, body: Buffer.from('other') });
    await on.tenant.call('PUT /api/jobs/{id}/paused', { params: { id: made.jobs.past }, body: { paused: false } });
    await on.tenant.call('DELETE /api/jobs/{id}', { params: { id: made.jobs.clocks } });
    await on.source.db.exec(sql`
      update job set raw_definition = replace(raw_definition, '"1s"', '"2s"') where name in ('flaky', 'past')`);
    const ran = await on.run();
    expect(ran.code).toBe(1);
    for (const line of [
      /project shop conflict: its description differs here/,
      /shop\/clocks conflict: it was deleted here/,
      /ops\/flaky conflict: its document was changed here and in the source/,
      /shop: db-password differs here/,
    ]) {
      expect(ran.stdout).toMatch(line);
    }
    expect(ran.stdout).toMatch(/ops\/past unchanged/);
    await on.report('--overwrite');
    const { raw_definition: text } = await on.tenant.call('GET /api/jobs/{id}', { params: { id: made.jobs.flaky } });
    expect(JSON.parse(text)).toMatchObject({ tasks: [{ name: 'try', retry: { delay: '2s' } }] });
    expect(await on.tenant.call('GET /api/jobs/{id}', { params: { id: made.jobs.clocks } })).toMatchObject({
      paused: true,
    });
    expect(outcomesOf(await on.report())).toMatchObject({
      shop: 'unchanged',
      'ops/flaky': 'unchanged',
      'shop/clocks': 'unchanged',
    });
  });

  it('a document that was only changed here stays, and its positions are still taken over', async () => {
    await on.report();
    const { raw_definition: text } = await on.tenant.call('GET /api/jobs/{id}', { params: { id: made.jobs.nightly } });
    const document = { ...(JSON.parse(text) as object), description: 'mine', params: { a: 1 } };
    await on.tenant.call('PUT /api/jobs', { body: JSON.stringify(document) });
    await on.source.db.exec(sql`update trigger set latest_trigger_datetime = ${made.hour(1)} where name = 'hourly'`);
    const job = (await on.report()).jobs.find(({ name }) => name === 'nightly');
    expect(job).toMatchObject({ outcome: 'changed', reason: expect.stringContaining('stays') as unknown, triggers: 1 });
    expect(await on.tenant.call('GET /api/jobs/{id}', { params: { id: made.jobs.nightly } })).toMatchObject({
      description: 'mine',
    });
    expect(await on.tenant.call('GET /api/jobs/{id}/triggers', { params: { id: made.jobs.nightly } })).toMatchObject([
      { latest_trigger_datetime: made.hour(1) },
    ]);
  });

  it('one project can be imported alone, if no job refers to another', async () => {
    const alone = await on.report('--project', 'shop');
    expect(Object.keys(outcomesOf(alone))).toEqual(['shop', 'shop/clocks', 'shop/join', 'shop/nightly']);
    await on.useNewTenant();
    const ran = await on.run('--project', 'ops', '--project', 'none');
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('project none: is not in the database')]);
    const other = await on.run('--project', 'ops');
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining(
        'ops/a follower: tasks[0].depends[0]: task not found: shop/nightly/task/export; import its project',
      ),
    ]);
    expect(await on.contents()).toEqual([]);
  });
});
