import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MillraceError } from '../../errors.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import {
  type Ran,
  shell,
  type ShellOptions,
  type SomeHandlers,
  startLocalServer,
  plainInstallation,
} from '../../../test/harness/cli/shell.ts';
import type { ReasonCode } from '../../control/reasons.ts';
import { startTenantServer, type TenantServer } from '../../../test/harness/cli/tenant-server.ts';

const made = { created_at: '2026-01-01T00:00:00Z', created_by: 'root', expires_at: null };
const ciKey = { id: newId(), identity: newId(), name: 'ci', role: 'operator', tenant: null } as const;

const at = '2030-01-01T00:00:00.000Z';
let server: TenantServer;
let healthy = true;
let stopped: ReasonCode | null = null;
let isSilent = false;
let isLaunching = true;
const cli = (argv: string[], options: ShellOptions = {}): Promise<Ran> => shell(argv, { env: server.env, ...options });

const fixed: SomeHandlers = {
  'GET /healthz': async () => {
    if (healthy) return { status: 'ok' };
    throw new MillraceError('tenant_unavailable', 'the scheduler is starting');
  },
  'GET /api/explain/tenant/{name}': async ({ params: { name } }) => ({
    tenant: name,
    standing: stopped === null && !isSilent ? 'runs' : stopped === 'stopped_by_user' ? 'off' : 'will_run',
    summary:
      stopped === null && !isSilent ? (isLaunching ? 'runs' : 'runs, but no launcher is active') : `not: ${name}`,
    state: stopped === null ? 'STARTED' : 'DISABLED',
    reason_code: isSilent ? 'silent' : stopped,
    sentence: `${name} is as it is.`,
    advice: stopped === null ? null : 'look at it',
    facts: { launcher_active: isLaunching, version: name === 'shop' ? '0.2.0' : null },
  }),
  'GET /openapi.json': async () => ({ info: { version: '9.8.7' } }),
  'GET /api/installation': async () => ({
    ...plainInstallation,
    database: { version: '15.18', slow: [{ name: 'autovacuum', value: 'off', advice: 'Set it to on.' }] },
  }),
  'GET /api/status': async () => ({ num_projects: 1, num_workers: 1, running_tasks: 0 }),
  'GET /api/schedulers': async () => [],
  'GET /api/workers': async () => [
    {
      uuid: newId(),
      name: 'box7',
      addr: '',
      version: '1',
      last_seen_datetime: at,
      running_tasks: 0,
      total_tasks: 8,
      runtimes: ['none'],
      queues: ['default'],
      status: 'up',
    },
  ],
  'POST /api/session/links': async () => ({ url: 'http://x/signin#abc', expires_at: at }),
  'POST /api/keys': async ({ body }) => ({ id: newId(), ...body, tenant: body.tenant ?? 'default', key: 'mr_secret' }),
  'GET /api/keys': async () => ({ items: [{ ...ciKey, ...made }], next: null }),
  'DELETE /api/keys/{id}': async () => {},
  'GET /api/sessions': async () => ({
    items: [
      {
        id: newId(),
        actor: 'sign-in link',
        role: 'root',
        tenant: null,
        key: { id: newId(), name: 'ann' },
        opened_with: 'link',
        created_at: at,
        used_at: at,
        expires_at: at,
        current: false,
      },
    ],
    next: null,
  }),
  'DELETE /api/sessions/{id}': async () => {},
  'DELETE /api/sessions': async () => ({ ended: 7 }),
};

async function findJob() {
  const found = await server.tenant.call('GET /api/jobs', { query: { project: 'p', name: 'j' } });
  if ('items' in found) throw new Error('a job was expected, and not a page of jobs');
  return found;
}

/** The bytes of an entry of the tenant's or the project's stash. */
async function readStash(name: string): Promise<Buffer> {
  const { db, ctx } = server.tenant;
  const { data } = await db.one<{ data: Buffer }>(sql`
    select data from global_stash where name = ${name} union all select data from project_stash where name = ${name}`);
  return ctx.secrets.decrypt(data);
}

beforeAll(async () => {
  server = await startTenantServer([], fixed);
});
afterAll(() => server.stop());
beforeEach(async () => {
  healthy = true;
  const daily = `{name: daily, start: ${at}, period: 1d, offset: -1m}`;
  const document = `project: p\nname: j\ndescription: ''\ntriggers: [${daily}]\ntasks: [{name: t}]\n`;
  expect((await cli(['apply', '-f', '-', '--create-project'], { stdin: document })).code).toBe(0);
  server.calls.length = 0;
});

describe('jobs and projects', () => {
  it('jobs and projects are listed as tables, and as JSON', async () => {
    expect((await cli(['projects'])).stdout).toMatch(/^PROJECT +ID +DESCRIPTION\np /);
    expect((await cli(['jobs'])).stdout).toMatch(/^PROJECT +JOB +STATE .*\np +j +live +1 +20/);
    expect(JSON.parse((await cli(['jobs', '--project', 'p', '--json'])).stdout)).toMatchObject([
      { project: 'p', name: 'j' },
    ]);
    expect((await cli(['jobs', '--project', 'nope'])).code).toBe(5);
  });

  it('a job is shown by name and by id', async () => {
    await cli(['activate', 'p/j', 't', at]);
    const { code, stdout } = await cli(['job', 'p/j']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^job: +p\/j$/m);
    expect(stdout).toMatch(/^daily +every 1d -1m/m);
    expect(stdout).toMatch(/^2030-01-01T00:00:00Z +1 ready$/m);
    expect(stdout).toMatch(/^now: +0 running, 1 ready$/m);
    expect(stdout).toMatch(/^next: +2029-12-31T23:59:00Z by daily for 2030-01-01T00:00:00Z$/m);
    const { id } = await findJob();
    expect(JSON.parse((await cli(['job', id, '--json'])).stdout)).toMatchObject({ id, tasks: [{ name: 't' }] });
  });

  it('a job is paused and unpaused', async () => {
    await cli(['pause', 'p/j']);
    expect((await findJob()).paused).toBe(true);
    expect((await cli(['job', 'p/j'])).stdout).toMatch(/^next: +-$/m);
    expect((await cli(['unpause', 'p/j'])).stdout).toBe('p/j is live\n');
    expect((await findJob()).paused).toBe(false);
  });

  it('an unknown job, project or task ends the command with 5 and a message', async () => {
    const { code, stdout, stderr } = await cli(['job', 'p/none']);
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' });
    expect(stderr).toMatch(/^error: job not found: p\/none\n$/);
    expect((await cli(['activate', 'p/j', 'none', at])).stderr).toContain('its tasks: t');
  });

  it('a task can be activated, and an instant cleared', async () => {
    expect((await cli(['activate', 'p/j', 't', '2030-01-01T01:00:00+01:00'])).stdout).toMatch(/^[0-9a-f-]{36}\n$/);
    expect(server.calls.at(-1)).toContain(`/tokens/${encodeURIComponent(at)}`);
    expect((await cli(['clear', 'p/j', at])).stdout).toBe('1 token of 2030-01-01T00:00:00Z cleared\n');
    const nothing = 'nothing to clear: the job has no tokens at 2031-01-01T00:00:00Z\n';
    expect((await cli(['clear', 'p/j', '2031-01-01T00:00:00Z'])).stdout).toBe(nothing);
    expect((await cli(['clear', '--help'])).stdout).toMatch(/Queued and\s+running\s+runs\s+are\s+left\s+alone;/);
  });

  it('jobs and projects are deleted only with --yes or a confirmation', async () => {
    expect(await cli(['delete', 'job', 'p/j'])).toMatchObject({ code: 2, stdout: '' });
    expect((await cli(['delete', 'job', 'p/j'], { tty: true, stdin: '' })).code).toBe(1);
    expect(await server.jobNames()).toEqual(['p/j']);
    expect((await cli(['delete', 'job', 'p/j', '--yes'])).stdout).toBe('job p/j is deleted\n');
    expect(await server.jobNames()).toEqual([]);
    const asked = await cli(['delete', 'project', 'p'], { tty: true, stdin: 'yes\n' });
    expect(asked.stderr).toContain('Delete the project p with 0 jobs? [y/N]');
    expect(await server.tenant.call('GET /api/projects')).toEqual([]);
  });
});

describe('tenant of a command', () => {
  it('the tenant is a prefix of the path', async () => {
    await cli(['jobs', '--tenant', 'a b']);
    await cli(['--tenant', 'default', 'jobs']);
    expect(server.calls.map((call) => call.split('?')[0])).toEqual(['GET /t/a%20b/api/jobs', 'GET /api/jobs']);
  });
});

describe('stash commands', () => {
  it('the stash keeps the exact bytes of stdin or a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
    await writeFile(join(folder, 'f'), 'from file\n');
    expect((await cli(['stash', 'set', 'a/b'], { stdin: Uint8Array.of(0, 255, 10) })).stdout).toBe(
      'a/b is set (3 bytes)\n',
    );
    await cli(['stash', 'set', 'x', '--file', 'f', '--project', 'p'], { cwd: folder });
    await rm(folder, { recursive: true });
    expect(await readStash('a/b')).toEqual(Buffer.of(0, 255, 10));
    expect((await readStash('x')).toString()).toBe('from file\n');
  });

  it('names in the stash are listed and deleted', async () => {
    await cli(['stash', 'set', 'k'], { stdin: 'v' });
    expect((await cli(['stash', 'list'])).stdout).toMatch(/^k$/m);
    expect((await cli(['stash', 'delete', 'k'])).code).toBe(0);
    expect((await cli(['stash', 'list'])).stdout).not.toMatch(/^k$/m);
  });
});

describe('status of the installation', () => {
  afterEach(() => {
    healthy = true;
    stopped = null;
    isSilent = false;
    isLaunching = true;
  });

  it('status ends with 1 if the installation is not well', async () => {
    const { code, stdout } = await cli(['status']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^health: +ok$/m);
    expect(stdout).toMatch(/^server version: +9\.8\.7$/m);
    expect(stdout).toMatch(/^box7 +[0-9a-f]{6} +up /m);
    healthy = false;
    const unwell = await cli(['status', '--json']);
    expect(unwell.code).toBe(1);
    expect(JSON.parse(unwell.stdout)).toMatchObject({ health: { ok: false, reason: 'the scheduler is starting' } });
  });

  it('status names settings of PostgreSQL that cost speed, and ends with 0 all the same', async () => {
    const { code, stdout } = await cli(['status']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^PostgreSQL: +15\.18\nslow: +autovacuum is off\. Set it to on\.$/m);
  });

  it.each([
    [true, 0],
    [false, 1],
  ])('status of a server whose health is %s ends with %i if its reader leaves early', async (isWell, code) => {
    healthy = isWell;
    const epipe = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const ran = await cli(['status'], { onOutput: (_, stdout) => void stdout.destroy(epipe) });
    expect([ran.code, ran.stderr]).toEqual([code, '']);
  });

  it('status shows the version of the tenant, which may differ from that of the server', async () => {
    expect((await cli(['status'])).stdout).toMatch(/^engine: +-$/m);
    expect((await cli(['status', '--tenant', 'shop'])).stdout).toMatch(/^engine: +0\.2\.0$/m);
  });

  it('a tenant that does not run is not well, unless a user stopped it', async () => {
    expect((await cli(['status'])).stdout).toMatch(/^tenant: +default\nscheduler: +runs\nstate: +STARTED\nengine/m);
    stopped = 'crashed';
    const crashed = await cli(['status', '--tenant', 'shop']);
    expect(crashed.code).toBe(1);
    expect(crashed.stdout).toMatch(
      /^tenant: +shop\nscheduler: +not: shop\nwhy: +shop is as it is\.\nwhat to do: +look at it$/m,
    );
    stopped = 'stopped_by_user';
    const byHand = await cli(['status', '--json']);
    expect([byHand.code, JSON.parse(byHand.stdout)]).toMatchObject([0, { tenant: { state: 'DISABLED' } }]);
    isLaunching = false;
    expect((await cli(['status'])).stdout).toMatch(/^launcher: +none is active$/m);
  });

  it('a STARTED tenant without a live scheduler is not ok', async () => {
    isSilent = true;
    const silent = await cli(['status', '--tenant', 'shop']);
    expect(silent.code).toBe(1);
    expect(silent.stdout).toMatch(
      /^health: +not ok: the scheduler of shop does not run\ntenant: +shop\nscheduler: +not: shop\nwhy: +shop is as it is\.$/m,
    );
    isSilent = false;
    isLaunching = false;
    for (const why of [null, 'stopped_by_user'] as const) {
      stopped = why;
      const alone = await cli(['status']);
      expect([alone.code, alone.stdout]).toEqual([
        1,
        expect.stringMatching(/^health: +not ok: no launcher is active, so nothing is started$/m),
      ]);
    }
    isLaunching = true;
    stopped = 'crashed';
    expect(JSON.parse((await cli(['status', '--json'])).stdout)).toMatchObject({
      health: { ok: false, code: 'crashed' },
    });
  });

  it('status shows the health of a server whose database does not answer', async () => {
    const refuse = async (): Promise<never> => {
      throw new MillraceError('database_unavailable', 'the database has not answered since noon');
    };
    const frozen = await startLocalServer({
      ...fixed,
      'GET /healthz': refuse,
      'GET /api/explain/tenant/{name}': refuse,
    });
    const { code, stdout } = await shell(['status'], { env: frozen.env });
    const answered = await shell(['status', '--json'], { env: frozen.env });
    await frozen.stop();
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^server: +http.*\nhealth: +not ok: the database has not answered since noon\n$/),
    ]);
    expect(JSON.parse(answered.stdout)).toMatchObject({ health: { ok: false, code: 'database_unavailable' } });
  });

  it.each([
    ['a table is missing', new MillraceError('internal', 'internal error; the server log has the details')],
    ['its role lacks a right', new MillraceError('database_unavailable', 'the role lacks a right')],
    ['its engine is missing', new MillraceError('tenant_unavailable', 'the engine 0.2.0 is not here')],
  ])('status shows what the gateway knows of a tenant whose API fails: %s', async (_, fault) => {
    const refuse = async (): Promise<never> => {
      throw fault;
    };
    const broken = await startLocalServer({
      ...fixed,
      'GET /api/status': refuse,
      'GET /api/workers': refuse,
      'GET /api/schedulers': refuse,
    });
    stopped = 'crashed';
    const { code, stdout } = await shell(['status'], { env: broken.env });
    stopped = null;
    const running = await shell(['status', '--json'], { env: broken.env });
    await broken.stop();
    expect(code).toBe(1);
    expect(stdout).toMatch(/^why: +default is as it is\.\nwhat to do: +look at it$/m);
    expect(stdout).toMatch(new RegExp(`^not read: +counts, schedulers, workers: ${fault.message}$`, 'm'));
    expect([running.code, JSON.parse(running.stdout)]).toMatchObject([1, { health: { ok: false }, workers: null }]);
  });

  it('the installation is well if a user stopped the default tenant', async () => {
    const fault = new MillraceError('tenant_stopped', 'the tenant default was stopped by a person');
    const down = await startLocalServer({
      ...fixed,
      'GET /healthz': async () => {
        throw fault;
      },
    });
    const { code, stdout } = await shell(['status'], { env: down.env });
    await down.stop();
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^health: +not ok: the tenant default was stopped/m)]);
  });

  it('sign-in links and keys are the only output on stdout', async () => {
    expect((await cli(['open'])).stdout).toBe('http://x/signin#abc\n');
    const made = await cli(['key', 'create', '--name', 'ci', '--role', 'operator', '--tenant', 'shop']);
    expect(made.stdout).toBe('mr_secret\n');
    expect(made.stderr).toContain('tenant shop');
    expect((await cli(['key', 'list'])).stdout).toContain('operator');
    expect((await cli(['key', 'revoke', newId()])).code).toBe(0);
    expect(server.calls.every((call) => !call.includes('/t/'))).toBe(true);
  });
});

describe('sessions', () => {
  it('sessions are listed, and ended by id or all at once', async () => {
    expect((await cli(['session', 'list'])).stdout).toMatch(/sign-in link +ann +root/);
    const id = newId();
    expect((await cli(['session', 'end', id])).stdout).toBe(`session ${id} has ended\n`);
    expect((await cli(['session', 'end', '--all'])).stdout).toBe('sessions ended: 7\n');
    expect(JSON.parse((await cli(['session', 'end', '--all', '--json'])).stdout)).toEqual({ ended: 7 });
    for (const wrong of [[], ['x'], [id, '--all']])
      expect((await cli(['session', 'end', ...wrong])).code, wrong.join(' ')).toBe(2);
  });
});

describe('exit codes', () => {
  it('a missing or wrong key ends a command with 4 and a hint where the key is set', async () => {
    const { code, stderr } = await shell(['jobs'], { env: { MILLRACE_URL: server.url } });
    expect(code).toBe(4);
    expect(stderr).toContain('MILLRACE_KEY');
    expect((await cli(['key', 'list'], { env: { ...server.env, MILLRACE_KEY: 'viewer-key' } })).code).toBe(4);
  });

  it('an unreachable server ends a command with 3 and a hint', async () => {
    const gone = await startLocalServer({});
    await gone.stop();
    const { code, stderr } = await shell(['jobs'], { env: gone.env });
    expect(code).toBe(3);
    expect(stderr).toBe(
      `error: no server answers at ${gone.url} (ECONNREFUSED); start it with \`millrace up\`, or set MILLRACE_URL\n`,
    );
    expect((await shell(['events'], { env: gone.env })).stderr).toBe(stderr);
    expect((await shell(['jobs'], { cwd: tmpdir() })).code).toBe(3);
  });

  it('a failure under --json prints a problem on stderr and nothing on stdout', async () => {
    const { stdout, stderr } = await cli(['--json', 'job', 'p/none']);
    expect(stdout).toBe('');
    expect(JSON.parse(stderr)).toMatchObject({ code: 'not_found', status: 404 });
  });
});
