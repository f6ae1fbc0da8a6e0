import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { insertHost } from '../../../../test/harness/tenant-calls.ts';
import { engineOf, inDatabase, makeTestLife, type TestLife } from '../../../../test/harness/tenant-life.ts';
import { engine, engineVersion } from '../../../engine/engine.ts';
import { MillraceError } from '../../../errors.ts';
import { tenantHandlers } from '../../../gateway/tenants/handlers.ts';
import { newId } from '../../../kernel/id.ts';
import { pause } from '../../../kernel/service.ts';
import { sql } from '../../../kernel/sql.ts';
import { findLifeRow } from '../../../tenants/queries.ts';
import {
  type LocalServer,
  type Ran,
  shell,
  type ShellOptions,
  type SomeHandlers,
  startLocalServer,
} from '../../../../test/harness/cli/shell.ts';

const newer = engineOf('2.0.0', ['create table more ()']);
const beta = engineOf('3.0.0-beta.1', ['create table more ()', 'create table yet_more ()']);
let life: TestLife;
let server: LocalServer;
const cli = (argv: string[], options: ShellOptions = {}): Promise<Ran> => shell(argv, { env: server.env, ...options });

beforeAll(async () => {
  life = await makeTestLife([engine, newer, beta]);
  const handlers = Object.entries(tenantHandlers).map(([key, handler]) => {
    const called = handler as (input: unknown, context: { life: TestLife }) => Promise<unknown>;
    return [key, (input: unknown) => called(input, { life })] as const;
  });
  server = await startLocalServer({
    ...(Object.fromEntries(handlers) as SomeHandlers),
    'GET /api/installation': async () => ({
      version: engineVersion,
      node: '',
      database: { version: '', slow: [] },
      couriers: [],
      conductors: [],
      warnings: [],
      settings: null,
    }),
    'GET /api/projects': async () => [],
    'POST /api/keys': async ({ body }) => {
      if (body.tenant === 'nope')
        throw new MillraceError('bad_request', 'there is no tenant nope', {
          faults: [{ path: 'body.tenant', message: 'there is no such tenant' }],
        });
      return { id: '', ...body, tenant: body.tenant ?? null, key: 'mr_secret' };
    },
  });
});
afterAll(async () => {
  await server.stop();
  await life.close();
});

/** Records the tenant as STARTED, on a host whose heartbeat stays valid for the whole test. */
async function started(name: string, version = engineVersion): Promise<void> {
  const host = await insertHost(life);
  await life.control.exec(sql`update host set beat_at = clock_timestamp() + interval '1 hour' where id = ${host}`);
  await life.control.exec(sql`
    insert into launch (tenant_id, state, version, host_id, ordered, changed_at)
    select id, 'STARTED', ${version}, ${host}, true, clock_timestamp() from tenant where name = ${name}
    on conflict (tenant_id) do update set
      state = 'STARTED', code = null, reason = null, version = excluded.version, host_id = excluded.host_id, ordered = true`);
}

/** Settles every new message as superseded while `work` runs. */
async function supersedeNext(work: () => Promise<void>): Promise<void> {
  await life.control.exec(sql`
    create function superseded() returns trigger language plpgsql as $$
    begin
      new.outcome := 'superseded'; new.detail := 'by message 105 (restart)';
      new.acknowledged_at := clock_timestamp(); new.settled_at := clock_timestamp();
      return new;
    end $$`);
  await life.control.exec(sql`
    create trigger superseded before insert on message for each row execute function superseded()`);
  try {
    await work();
  } finally {
    await life.control.exec(sql`drop function superseded cascade`);
  }
}

async function disabled(name: string, code: string, reason: string): Promise<void> {
  await life.control.exec(sql`
    update launch set state = 'DISABLED', code = ${code}, reason = ${reason}
      from tenant where tenant.id = tenant_id and name = ${name}`);
}

describe('tenant commands', () => {
  it('a tenant can be created, listed, shown, explained, stopped, upgraded, renamed and dropped', async () => {
    const [name, then] = [life.name(), life.name()];
    const made = await cli(['tenant', 'create', name, '--own-host']);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining(`${name} will run`) as unknown });
    expect(made.stderr).toContain(`millrace tenant why ${name}`);
    await started(name);
    expect((await cli(['tenant', 'list'])).stdout).toMatch(new RegExp(`${name} +runs +STARTED +${engineVersion}`));
    const shown = await cli(['tenant', 'show', name]);
    expect(shown.stdout).toMatch(/state: +STARTED[^]*restart +install .*started/);
    expect((await cli(['tenant', 'why', name])).stdout).toBe(
      `runs\n  The scheduler of ${name} runs at version ${engineVersion} on box7, process 4711.\n`,
    );
    await life.control.exec(sql`update message set detail = ${`at ${engineVersion}`} where tenant = ${name}`);
    expect((await cli(['tenant', 'show', name])).stdout).toContain(`started at ${engineVersion}`);
    for (const kind of ['stop', 'start', 'restart'])
      expect([kind, (await cli(['tenant', kind, name])).code]).toEqual([kind, 0]);
    const plan = await cli(['tenant', 'upgrade', name, '--dry-run']);
    expect(plan).toMatchObject({
      code: 0,
      stdout: `${name}: ${engineVersion} → 2.0.0\n  ${newer.all.at(-1)?.name}\n`,
      stderr: 'nothing was changed; 0 connections would have to be closed\n',
    });
    expect((await cli(['tenant', 'upgrade', name, '--to', '2.0.0'])).code).toBe(0);
    expect((await cli(['tenant', 'upgrade', name])).stdout).toBe(`${name} is already at 2.0.0\n`);
    expect((await cli(['tenant', 'own-host', name, 'off'])).stdout).toBe(`${name} shares a host\n`);
    expect((await cli(['tenant', 'rename', name, then])).stdout).toBe(
      `${name} is now ${then}, in the database ${then}\n`,
    );
    expect((await cli(['tenant', 'drop', then])).stderr).toContain(`Drop the tenant ${then} and its database ${then}?`);
    expect(await findLifeRow(life.control, then)).toBeDefined();
    expect((await cli(['tenant', 'drop', then, '--yes'])).stdout).toBe(
      `${then} and its database ${then} are dropped\n`,
    );
    expect(await cli(['tenant', 'show', then])).toMatchObject({ code: 5 });
  }, 30_000);

  it('a database is adopted, and released after a confirmation', async () => {
    const [name, database] = [life.name(), life.name()];
    await inDatabase(life, 'postgres', (_, client) => client.query(`create database ${database}`));
    expect((await cli(['tenant', 'adopt', name, '--database', database])).code).toBe(0);
    const asked = await cli(['tenant', 'release', name], { tty: true, stdin: 'n\n' });
    expect([asked.code, asked.stderr]).toMatchObject([1, expect.stringContaining('keys are lost')]);
    expect((await cli(['tenant', 'release', name], { tty: true, stdin: 'y\n' })).code).toBe(0);
    expect(await findLifeRow(life.control, name)).toBeUndefined();
  });

  it('tenant commands print JSON with --json', async () => {
    const name = life.name();
    const made = await cli(['tenant', 'create', name, '--json']);
    expect(JSON.parse(made.stdout)).toMatchObject({ tenant: { name }, message: { outcome: 'started' } });
    expect(JSON.parse((await cli(['tenant', 'show', name, '--json'])).stdout)).toMatchObject({
      name,
      messages: [{ deadline: expect.stringMatching(/Z$/) as unknown }],
    });
    expect(JSON.parse((await cli(['tenant', 'why', name, '--json'])).stdout)).toMatchObject({
      reason_code: 'starting',
    });
  });

  it('a tenant that does not start ends the command with 1 and the reason', async () => {
    const name = life.name();
    await cli(['tenant', 'create', name]);
    await started(name);
    await disabled(name, 'no_engine', 'no engine: engine 9 is not here');
    const ran = await cli(['tenant', 'start', name]);
    expect(ran).toMatchObject({ code: 1, stderr: 'it has not started: no engine: engine 9 is not here\n' });
  });

  it('a superseded message is reported with the message that superseded it', async () => {
    const name = life.name();
    await cli(['tenant', 'create', name]);
    await started(name);
    await supersedeNext(async () => {
      expect(await cli(['tenant', 'start', name])).toMatchObject({
        code: 1,
        stderr: 'it has not started: superseded by message 105 (restart)\n',
      });
    });
  });

  it('tenant sql prints a script to install, or to upgrade from a version or from that of a tenant', async () => {
    const [name, other] = [life.name(), life.name()];
    await inDatabase(life, 'postgres', (_, client) => client.query(`create database ${other}`));
    const install = await cli(['tenant', 'sql']);
    await inDatabase(life, other, (_, client) => client.query(install.stdout));
    await cli(['tenant', 'create', name]);
    await started(name);
    for (const argv of [[name], ['--from', engineVersion]]) {
      const script = await cli(['tenant', 'sql', ...argv, '--to', '2.0.0']);
      expect(script).toMatchObject({ code: 0, stdout: expect.stringContaining('create table more ()') as unknown });
    }
    expect((await cli(['tenant', 'sql', name, '--from', '1'])).code).toBe(2);
  });

  it('tenant sql uses the default versions of `tenant upgrade` and `tenant create`', async () => {
    const name = life.name();
    await cli(['tenant', 'create', name]);
    await started(name);
    for (const argv of [[name], ['--from', engineVersion]])
      expect((await cli(['tenant', 'sql', ...argv])).stdout).toContain(`upgrade from ${engineVersion} to 2.0.0`);
    expect((await cli(['tenant', 'sql'])).stdout).toContain(`install ${engineVersion}`);
    // a tenant that is already at the target needs no script
    await started(name, '2.0.0');
    const none = `${name} is already at 2.0.0: nothing to do\n`;
    expect(await cli(['tenant', 'sql', name])).toEqual({ code: 0, stdout: '', stderr: none });
    expect(JSON.parse((await cli(['tenant', 'sql', name, '--json'])).stdout)).toMatchObject({ script: '' });
  });

  it('tenant sql names a tenant whose version is not installed here, or not known', async () => {
    const name = life.name();
    await cli(['tenant', 'create', name]);
    await started(name, '1.7.7');
    const strange = await cli(['tenant', 'sql', name]);
    expect(strange).toMatchObject({ code: 1, stdout: '' });
    expect(strange.stderr).toContain(`\n  ${name}, which is at 1.7.7: engine 1.7.7 is not here`);
    await life.control.exec(
      sql`update launch set version = null from tenant where tenant.id = tenant_id and name = ${name}`,
    );
    expect(await cli(['tenant', 'sql', name])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not known') as unknown,
    });
    await disabled(name, 'not_installed', 'not installed');
    expect(await cli(['tenant', 'sql', name])).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: Millrace is not installed in ${name}; \`millrace tenant sql\`, without a name, prints the script that installs it\n`,
    });
  });

  it('an order without an active launcher is reported as deferred', async () => {
    const name = life.name();
    await cli(['tenant', 'create', name]);
    await started(name);
    await life.launcher.stop();
    await life.control.exec(sql`update launcher_lease set renewed_at = clock_timestamp() - interval '6 seconds'`);
    try {
      for (const kind of ['stop', 'start', 'restart'])
        expect(await cli(['tenant', kind, name])).toEqual({
          code: 1,
          stdout: `${name} will ${kind} when a launcher is active again; none is active now\n`,
          stderr: '',
        });
    } finally {
      await life.launcher.start();
    }
  });

  it('an error names the wrong argument and its fault', async () => {
    expect((await cli(['tenant', 'create', 'Has Spaces'])).stderr).toMatch(
      /error: The request is not understood\n {2}<name>: lower-case letters/,
    );
    expect((await cli(['tenant', 'adopt', 'x', '--engine', '7.0.0', '--database', life.name()])).stderr).toMatch(
      /error: there is no database/,
    );
    expect((await cli(['tenant', 'create', life.name(), '--engine', '7.0.0'])).stderr).toMatch(
      /\n {2}--engine: engine 7\.0\.0 is not here/,
    );
    for (const [name, words] of [
      ['', 'a tenant needs a name'],
      ['a'.repeat(64), 'a name has at most 63 characters'],
    ] as const)
      expect((await cli(['tenant', 'create', name])).stderr).toMatch(
        new RegExp(`error: The request is not understood\n {2}<name>: ${words}\n$`),
      );
    expect((await cli(['tenant', 'create', 'x', '--database', ''])).stderr).toContain(
      '--database: a database needs a name',
    );
    expect((await cli(['tenant', 'adopt', 'Has Spaces', '--database', 'x'])).stderr).toMatch(
      /\n {2}<name>: lower-case letters/,
    );
    expect((await cli(['tenant', 'create', 'postgres'])).stderr).toMatch(
      /error: the database postgres cannot be a tenant's: it belongs to PostgreSQL itself; name another\n$/,
    );
    for (const argv of [
      ['tenant', 'sql', '--to', ''],
      ['tenant', 'upgrade', 'x', '--to', ''],
      ['--tenant', '', 'projects'],
    ])
      expect(await cli(argv)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('It must not be empty.') as unknown,
      });
    expect((await cli(['tenant', 'sql', '--to', '7.0.0'])).stderr).toMatch(/\n {2}--to: engine 7\.0\.0 is not here/);
  });
});

describe('slots command', () => {
  it('the slots command shows and changes the limit', async () => {
    expect((await cli(['slots'])).stdout).toBe('0 of 64 taken, 0 waiting\n');
    expect((await cli(['slots', '--limit', '3'])).stdout).toBe('0 of 3 taken, 0 waiting\n');
    expect((await cli(['slots', '--limit', '-1'])).code).toBe(2);
  });

  it('a limit that stops schedulers needs a confirmation, which names them and the way back', async () => {
    const names = [life.name(), life.name()];
    await cli(['slots', '--limit', '9']);
    for (const [i, name] of names.entries()) {
      await cli(['tenant', 'create', name]);
      const at = new Date(Date.UTC(2030, 0, i + 1));
      await life.control.exec(sql`
        insert into slot (id, kind, tenant_id, reason, asked_at, granted_at)
        select ${newId()}, 'scheduler', id, 'scheduler', ${at}, ${at} from tenant where name = ${name}`);
    }
    const limit = async () => (JSON.parse((await cli(['slots', '--json'])).stdout) as { limit: number }).limit;
    try {
      const unasked = await cli(['slots', '--limit', '1']);
      expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') as unknown });
      expect(unasked.stderr).toContain(`A limit of 1 stops 1 scheduler (${names[1]})`);
      const refused = await cli(['slots', '--limit', '0'], { tty: true, stdin: 'n\n' });
      expect(refused.stderr).toContain(`stops 2 schedulers (${names[1]}, ${names[0]})`);
      expect([refused.code, await limit()]).toEqual([1, 9]);
      const printed = await cli(['slots', '--limit', '0', '--yes']);
      expect(printed.code).toBe(0);
      expect(printed.stderr).toContain(
        `2 schedulers (${names[1]}, ${names[0]}) will stop; \`millrace slots --limit 9\` brings them back`,
      );
      expect(printed.stderr).toContain('will stop when a launcher is active again; none is active now');
      expect(await limit()).toBe(0);
      await cli(['slots', '--limit', '9']);
      // a limit that stops no scheduler needs no confirmation
      expect(await cli(['slots', '--limit', '2'])).toMatchObject({ code: 0, stderr: '' });
      // schedulers that already wait go before the stopped ones
      await life.control.exec(
        sql`update slot set granted_at = null where granted_at < ${new Date(Date.UTC(2030, 0, 2))}`,
      );
      expect((await cli(['slots', '--limit', '0', '--yes'])).stderr).toContain(
        `1 scheduler (${names[1]}) will stop; 1 scheduler waits before it: a higher limit starts waiting schedulers in order, and \`millrace slots --limit 3\` starts all of them`,
      );
    } finally {
      await life.control.exec(sql`delete from slot`);
    }
  });

  it('a lower limit is shown in effect, with the schedulers that have not ended in time', async () => {
    const name = life.name();
    await cli(['slots', '--limit', '9']);
    await cli(['tenant', 'create', name]);
    // the test plays the launcher and holds its lease
    await life.control.exec(sql`
      insert into launcher (id, machine, pid, version, started_at, beat_at)
      select holder, 'box1', 1, '1', clock_timestamp(), clock_timestamp() from launcher_lease`);
    await life.control.exec(sql`
      insert into slot (id, kind, tenant_id, reason, asked_at, granted_at)
      select ${newId()}, 'scheduler', id, 'scheduler', clock_timestamp(), clock_timestamp() from tenant where name = ${name}`);
    try {
      const late = await cli(['slots', '--limit', '0', '--yes']);
      expect(late.stdout).toMatch(/^1 of 0 taken/);
      expect(late.stderr).toMatch(new RegExp(`1 scheduler \\(${name}\\) has not ended yet\n$`));
      await life.control.exec(sql`update slot set granted_at = null`);
      const raising = cli(['slots', '--limit', '1']);
      await pause(500);
      await life.control.exec(sql`update slot set granted_at = clock_timestamp()`);
      expect((await raising).stdout).toMatch(/^1 of 1 taken, 0 waiting\n/);
      const lowering = cli(['slots', '--limit', '0', '--yes']);
      await pause(500);
      await life.control.exec(sql`delete from slot`);
      expect((await lowering).stdout).toBe('0 of 0 taken, 0 waiting\n');
    } finally {
      await life.control.exec(sql`delete from slot`);
      await life.control.exec(sql`delete from launcher`);
    }
  });
});

describe('MILLRACE_TENANT', () => {
  it('MILLRACE_TENANT is the tenant of every command without --tenant', async () => {
    const env = { ...server.env, MILLRACE_TENANT: 'shop' };
    server.calls.length = 0;
    await cli(['projects'], { env });
    await cli(['projects', '--tenant', 'other'], { env });
    await cli(['projects'], { env: { ...env, MILLRACE_TENANT: '' } });
    expect(server.calls.map((call) => call.split('?')[0])).toEqual([
      'GET /t/shop/api/projects',
      'GET /t/other/api/projects',
      'GET /api/projects',
    ]);
  });

  it('MILLRACE_TENANT is the tenant of a new key, unless its role has no tenant', async () => {
    const env = { ...server.env, MILLRACE_TENANT: 'shop' };
    const make = (role: string) => cli(['key', 'create', '--name', 'k', '--role', role], { env });
    expect((await make('viewer')).stderr).toContain('tenant shop');
    expect((await make('worker')).stderr).toContain('all tenants');
  });

  it('an error about an unknown tenant names MILLRACE_TENANT or --tenant', async () => {
    const key = ['key', 'create', '--name', 'k', '--role', 'viewer'];
    expect((await cli([...key, '--tenant', 'nope'])).stderr).toContain('\n  --tenant: there is no such tenant');
    const env = { ...server.env, MILLRACE_TENANT: 'nope' };
    expect((await cli(key, { env })).stderr).toContain('\n  MILLRACE_TENANT: there is no such tenant');
  });
});
