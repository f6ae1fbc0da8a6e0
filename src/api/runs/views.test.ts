/** One run: its history, the other attempts, and its environment without secrets. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { anyText, refusal, textWith } from '../../../test/harness/expected.ts';
import { activate, aWorker, claim, finish, fire, makeJob, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { environmentOfRun } from './environment.ts';
import { requireRun } from './handlers.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
/** Deletes all jobs and ends their runs, so that no test claims runs of another. */
afterEach(async () => {
  const jobs = await api.db.rows<{ id: string }>(sql`select id from job where deleted_at is null`);
  for (const { id } of jobs) await api.call('DELETE /api/jobs/{id}', { params: { id } });
  await finish(api, await claim(api, 1_000), 'cancelled');
});
afterAll(() => api.close());

const day = (n: number): string => new Date(Date.UTC(2026, 0, n)).toISOString();
const history = async (id: string) => (await api.call('GET /api/runs/{id}/history', { params: { id } })).items;
const attempts = async (id: string) => (await api.call('GET /api/runs/{id}/attempts', { params: { id } })).items;
const environment = (id: string) => api.call('GET /api/runs/{id}/environment', { params: { id } });
const step = (): void => api.advance(1_000);

describe('history of a run', () => {
  it('the history has the queueing with its actor, the start with its worker, and the end', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], day(1));
    expect(await history(id)).toEqual([
      { what: 'queued', at: anyText, actor: 'key:operator', message: textWith('queued: ') },
    ]);
    step();
    const runs = await claim(api);
    step();
    await finish(api, runs);
    const moments = await history(id);
    expect(moments.map(({ what, actor }) => [what, actor])).toEqual([
      ['queued', 'key:operator'],
      ['started', null],
      ['ended', 'worker'],
    ]);
    expect(moments[1]?.message).toContain(aWorker);
    expect(moments[2]?.message).toBe('ended in success');
    expect(moments.map(({ at }) => at)).toEqual(moments.map(({ at }) => at).toSorted());
  });

  it('the history of a fired run names the trigger', async () => {
    const job = await makeJob(api, {
      triggers: [{ name: 'nightly', start: day(1), period: '1d' }],
      tasks: [{ name: 'a', depends: ['trigger/nightly'] }],
    });
    await fire(api, job.triggers['nightly'], day(1));
    const [run] = await runAll(api);
    expect((await history(run?.id ?? ''))[0]).toMatchObject({ actor: 'scheduler', message: textWith('nightly') });
  });

  it('the history has a repeated hand-out, but not the first start, which is not on record', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], day(1));
    await claim(api);
    await api.db.exec(sql`update live set worker_id = null, claimed_at = null where id = ${id}`);
    step();
    await runAll(api, 'failure');
    expect((await history(id)).map(({ what, message }) => [what, message])).toEqual([
      ['queued', anyText],
      ['handed_out_again', textWith('for the 2nd time')],
      ['ended', 'ended in failure'],
    ]);
  });

  it('the history has the user who cancelled the run, and its scheduled retry', async () => {
    const retry = { max_attempts: 3, delay: '1h' };
    const job = await makeJob(api, { tasks: [{ name: 'a', retry }] });
    const id = await activate(api, job.tasks['a'], day(1));
    await runAll(api, 'failure');
    const due = textWith('attempt 2 is scheduled for ');
    expect((await history(id)).slice(2)).toMatchObject([
      { what: 'ended', message: 'ended in failure' },
      { what: 'retry_scheduled', message: due },
    ]);
    step();
    await api.as(keyOf('root'))('POST /api/runs/{id}/cancel', { params: { id } });
    expect((await history(id)).slice(3)).toMatchObject([
      { what: 'retry_scheduled', message: 'attempt 2 was scheduled' },
      { what: 'cancel_wished', actor: 'key:root', message: textWith('was cancelled') },
    ]);
    const other = await activate(api, job.tasks['a'], day(2));
    const runs = await claim(api);
    step();
    await api.call('POST /api/runs/{id}/cancel', { params: { id: other } });
    step();
    await finish(api, runs, 'failure');
    // the stand-in worker reports its start with the end
    expect((await history(other)).filter(({ what }) => what !== 'started').slice(1)).toMatchObject([
      { what: 'cancel_wished', actor: 'key:operator' },
      { what: 'ended', message: 'ended in cancelled: cancelled by key:operator' },
    ]);
  });

  it('the history without events is derived from the run alone', async () => {
    const job = await makeJob(api);
    const id = await activate(api, job.tasks['only'], day(1));
    await runAll(api);
    await api.db.exec(sql`delete from event where subject = ${id}`);
    expect((await history(id)).map(({ what, actor }) => [what, actor])).toEqual([
      ['queued', null],
      ['started', null],
      ['ended', null],
    ]);
  });
});

describe('attempts of a run', () => {
  it('the attempts are all runs of the task at the instant, newest first, for each of them', async () => {
    const job = await makeJob(api);
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      ids.unshift(await activate(api, job.tasks['only'], day(1)));
      if (n < 2) await runAll(api);
      step();
    }
    await activate(api, job.tasks['only'], day(2));
    for (const id of ids) expect((await attempts(id)).map((run) => run.id)).toEqual(ids);
    const whole = await api.call('GET /api/runs/{id}', { params: { id: ids[0] ?? '' } });
    expect(whole).toMatchObject((await attempts(ids[0] ?? ''))[0] ?? {});
  });
});

describe('environment of a run', () => {
  const valueOf = (found: Awaited<ReturnType<typeof environment>>, name: string) =>
    found.variables.find((variable) => variable.name === name);

  it('the environment has the command and the variables with expanded placeholders, and no secret', async () => {
    await api.call('PUT /api/stash/{key}', { params: { key: 'pass' }, body: Buffer.from('open sesame') });
    const job = await makeJob(api, {
      tasks: [
        {
          name: 'a',
          queue: 'heavy',
          timeout: '90s',
          process: {
            command: ['echo', '{{instant.date}}', '{{params.who}}'],
            env: {
              WHO: '{{params.who}} of {{job}}',
              PASS: { stash: 'pass' },
              MILLRACE_TENANT: 'not mine to say',
            },
          },
        },
      ],
      params: { who: 'nobody', rest: 1 },
    });
    const { runs } = await api.call('POST /api/jobs/{id}/run', {
      params: { id: job.id },
      body: { params: { who: 'anna' }, instant: day(3) },
    });
    const id = runs[0] ?? '';
    const found = await environment(id);
    expect(found).toMatchObject({
      runtime: 'process',
      queue: 'heavy',
      command: ['echo', '2026-01-03', 'anna'],
      image: null,
      cwd: null,
      timeout_seconds: 90,
      params: { who: 'anna', rest: 1 },
      input: null,
    });
    expect(valueOf(found, 'WHO')).toEqual({ name: 'WHO', value: 'anna of job', stash: null, from: 'document' });
    expect(valueOf(found, 'PASS')).toEqual({ name: 'PASS', value: null, stash: 'pass', from: 'document' });
    expect(valueOf(found, 'MILLRACE_RUN_ID')).toMatchObject({ value: id, from: 'millrace' });
    expect(found.variables.filter(({ name }) => name === 'MILLRACE_TENANT')).toMatchObject([{ value: 'default' }]);
    for (const name of ['MILLRACE_CREDENTIAL', 'WATERWHEEL_JWT']) expect(valueOf(found, name)?.value).toBeNull();
    expect(JSON.stringify(found)).not.toContain('sesame');
  });

  it('the environment has the address of the API only if it does not depend on the worker', async () => {
    const process = { command: ['curl', '{{url}}/api/status'], env: { AT: 'see {{url}}' } };
    const job = await makeJob(api, { tasks: [{ name: 'a', process }] });
    const id = await activate(api, job.tasks['a'], day(1));
    const certain = await environment(id);
    expect(certain.command).toEqual(['curl', 'http://127.0.0.1:8080/api/status']);
    expect(valueOf(certain, 'MILLRACE_URL')).toMatchObject({ value: 'http://127.0.0.1:8080', from: 'millrace' });
    const ctx = { ...api.ctx, settings: { ...api.ctx.settings, publicUrl: undefined } };
    const found = await environmentOfRun(ctx, await requireRun(ctx, id));
    expect(found.command).toEqual(['curl', '{{url}}/api/status']);
    expect(valueOf(found, 'AT')?.value).toBe('see {{url}}');
    for (const name of ['MILLRACE_URL', 'WATERWHEEL_SERVER_ADDR'])
      expect(valueOf(found, name)).toEqual({ name, value: null, stash: null, from: 'worker' });
  });

  it("the environment is that of the run's version, even if the job was deleted", async () => {
    const job = (word: string) =>
      makeJob(api, { project: 'versions', tasks: [{ name: 'a', process: { command: ['echo', word] } }] });
    const first = await job('one');
    const id = await activate(api, first.tasks['a'], day(1));
    await job('two');
    expect((await environment(id)).command).toEqual(['echo', 'one']);
    await runAll(api);
    await api.call('DELETE /api/jobs/{id}', { params: { id: first.id } });
    expect((await environment(id)).command).toEqual(['echo', 'one']);
  });

  it('the environment depends on the runtime: function, image or none', async () => {
    const job = await makeJob(api, {
      tasks: [
        { name: 'f', function: { name: 'send', input: { at: '{{instant.unix}}', deep: ['{{attempt}}'] } } },
        { name: 'd', docker: { image: 'alpine:3', args: ['ls', '{{task}}'], memory: '64m', volumes: ['/a:/b:ro'] } },
        { name: 'n' },
      ],
    });
    const of = async (task: string) => environment(await activate(api, job.tasks[task], day(1)));
    expect(await of('f')).toMatchObject({
      runtime: 'function',
      command: ['send'],
      input: { at: Date.parse(day(1)) / 1_000, deep: [1] },
    });
    expect(await of('d')).toMatchObject({
      runtime: 'docker',
      image: 'alpine:3',
      command: ['ls', 'd'],
      container: { memory: '64 MiB', volumes: '/a:/b:ro' },
    });
    expect(await of('n')).toMatchObject({ runtime: 'none', command: null, variables: [], timeout_seconds: null });
  });

  it('a placeholder without a value stays unexpanded', async () => {
    const process = { command: ['echo', '{{params.missing}}'], env: { X: '{{params.missing}}' } };
    const job = await makeJob(api, { tasks: [{ name: 'a', process }], params: { missing: 1 } });
    const id = await activate(api, job.tasks['a'], day(1));
    await api.db.exec(sql`
      update job_version
         set work = null, definition = replace(definition::text, '"missing":1', '"other":1')::json
       where job_id = ${job.id}`);
    const found = await environment(id);
    expect(found.command).toEqual(['echo', '{{params.missing}}']);
    expect(valueOf(found, 'X')?.value).toBe('{{params.missing}}');
  });
});

it('a task with large params gets their address, and may read only those of its own run', async () => {
  const job = await makeJob(api, { tasks: [{ name: 'a', process: { command: ['x'] } }, { name: 'b' }] });
  const params = { x: 'x'.repeat(110_000) };
  const body = { params, priority: 'high' as const };
  const { runs } = await api.call('POST /api/jobs/{id}/run', { params: { id: job.id }, body });
  const ended = await claim(api);
  const [id = '', other = ''] = runs.toSorted((a) =>
    ended.find((run) => run.id === a)?.task_id === job.tasks['a'] ? -1 : 1,
  );
  const found = await environment(id);
  expect(found.params).toEqual(params);
  const variable = (name: string) => found.variables.find((each) => each.name === name)?.value;
  expect(variable('MILLRACE_PARAMS')).toBeUndefined();
  expect(variable('MILLRACE_PARAMS_URL')).toBe(`http://127.0.0.1:8080/api/runs/${id}/environment`);
  const caller = { kind: 'task', tenantId: api.ctx.tenant.id, run: id, lease: 1 } as const;
  expect((await api.fetch('GET', `/api/runs/${id}/environment`, { caller })).status).toBe(200);
  expect((await api.fetch('GET', `/api/runs/${other}/environment`, { caller })).status).toBe(403);
});

it('placeholders that would expand without bound stay unexpanded', async () => {
  const process = { command: ['x', '{{params.x}}'.repeat(10_000)], env: { A: '{{params.x}}', B: '{{attempt}}' } };
  const job = await makeJob(api, { tasks: [{ name: 'a', process }], params: { x: 'x'.repeat(200_000) } });
  const found = await environment(await activate(api, job.tasks['a'], day(1)));
  expect(found.command?.[1]).toBe('{{params.x}}'.repeat(10_000));
  expect(JSON.stringify(found).length).toBeLessThan(3_000_000);
});

it('history, attempts and environment of an unknown run are not found', async () => {
  for (const ask of [history, attempts, environment]) await expect(ask(newId())).rejects.toEqual(refusal(404));
});
