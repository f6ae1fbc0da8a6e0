/**
 * The launcher and PostgreSQL's own commands: databases are created, renamed, copied and dropped by plain SQL under running
 * schedulers; migrations by a user's tool commit, roll back, are killed or prepared.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from 'pg';
import { TestInstallation } from '../harness/installation.ts';
import { millrace } from '../harness/product.ts';
import { until } from '../harness/until.ts';

let world: TestInstallation;
beforeAll(async () => {
  world = await TestInstallation.start({ launchers: 1 });
  await world.started('default');
}, 60_000);
afterAll(() => world.close());

const create = (name: string) => world.call('POST /api/tenants', { body: { name } });

/** Begins a migration by hand, as a tool does, and changes the schema in its transaction. */
async function migrating<T>(name: string, work: (client: Client) => Promise<T>): Promise<T> {
  return world.in(name, async (client) => {
    await client.query('begin; select millrace.begin_migration(); create table millrace.made_by_hand (id integer)');
    return work(client);
  });
}

const holdsTable = (name: string): Promise<boolean> =>
  world.in(name, async (client) => {
    const { rows } = await client.query<{ there: boolean }>(
      `select to_regclass('millrace.made_by_hand') is not null as there`,
    );
    return rows[0]?.there ?? false;
  });

const dropTable = () => world.in('subject', (client) => client.query('drop table millrace.made_by_hand'));

describe('database', () => {
  it('a database that is created by plain SQL becomes a tenant, and starts when Millrace is installed', async () => {
    await world.administer('create database made');
    await world.waitUntilNotRunning('made', /not installed/);
    const { code, stdout, stderr } = await millrace(['tenant', 'sql'], { env: world.env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // rolled back: nothing was installed
    await world.in('made', (client) => client.query(stdout.replace(/^commit;$/m, 'rollback;')));
    await world.waitUntilNotRunning('made', /not installed/);
    await world.in('made', (client) => client.query(stdout));
    await world.started('made');
    expect(await world.schedulers()).toBe(2);
  });

  it('a database can be renamed by plain SQL under its running scheduler, which continues', async () => {
    await create('before');
    await world.started('before');
    await world.administer('alter database before rename to after');
    await world.started('after');
    expect(await world.placed('before')).toBeUndefined();
  });

  it('a database can be copied as a template under its running scheduler, and both run', async () => {
    await world.administer('create database copied template after');
    await world.started('copied');
    await world.started('after');
  });

  it('a tenant whose database becomes a template stops, and runs again afterwards', async () => {
    await world.administer('alter database copied is_template true');
    await world.waitUntilNotRunning('copied', /template/);
    await world.administer('alter database copied is_template false');
    await world.started('copied');
    await world.administer('alter database copied allow_connections false');
    await world.waitUntilNotRunning('copied', /accepts no connections/);
    await world.administer('alter database copied allow_connections true');
    await world.started('copied');
  });

  it('a database can be dropped by plain SQL under its running scheduler, and its tenant is deleted', async () => {
    const before = await world.schedulers();
    await world.administer('drop database copied');
    await until('it is forgotten', async () => (await world.placed('copied')) === undefined);
    await until('one scheduler less', async () => (await world.schedulers()) === before - 1);
  });
});

describe('migration by hand', () => {
  beforeAll(async () => {
    await create('subject');
    await world.started('subject');
  });

  it.each([
    ['commits', (client: Client) => client.query('commit'), true],
    ['rolls back', (client: Client) => client.query('rollback'), false],
    [
      'is killed',
      (client: Client) => client.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {}),
      false,
    ],
  ])('during a migration that %s the scheduler is stopped, and afterwards it runs', async (_, end, made) => {
    const { order } = await world.started('subject');
    await migrating('subject', async (client) => {
      const placed = await world.waitUntilNotRunning('subject', /waiting on transaction/);
      expect(placed.state).toBe('ALLOCATED');
      await end(client);
    });
    expect((await world.started('subject')).order).toBeGreaterThan(order);
    expect(await holdsTable('subject')).toBe(made);
    if (made) await dropTable();
  });

  it.each([
    ['committed', true],
    ['rolled back', false],
  ])('a tenant waits for a prepared migration until it is %s', async (how, made) => {
    await migrating('subject', (client) => client.query(`prepare transaction 'by hand'`));
    await world.waitUntilNotRunning('subject', /waiting on transaction/);
    // long after the session is gone
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await world.waitUntilNotRunning('subject', /waiting on transaction/);
    await world.in('subject', (client) => client.query(`${made ? 'commit' : 'rollback'} prepared 'by hand'`));
    await world.started('subject');
    expect([how, await holdsTable('subject')]).toEqual([how, made]);
    if (made) await dropTable();
  });

  it('a removal of Millrace stops the tenant if it commits, and has no effect if it rolls back', async () => {
    await migrating('subject', async (client) => {
      await client.query('drop schema millrace cascade');
      await world.waitUntilNotRunning('subject', /waiting on transaction/);
      await client.query('rollback');
    });
    await world.started('subject');
    await migrating('subject', async (client) => {
      await client.query('drop schema millrace cascade; commit');
    });
    await world.waitUntilNotRunning('subject', /not installed/);
  });
});

describe('slots', () => {
  it('a tenant without a free slot waits in line, and starts when one is freed', async () => {
    const { taken } = await world.call('GET /api/slots');
    await world.call('PUT /api/slots', { body: { limit: taken } });
    await create('waiting');
    const { reason } = await world.waitUntilNotRunning('waiting', /no slot/);
    expect(reason).toBe('no slot (position 1)');
    expect((await millrace(['tenant', 'why', 'waiting'], { env: world.env })).stdout).toMatch(/slot/);
    await world.call('POST /api/tenants/{name}/stop', { params: { name: 'after' } });
    await world.started('waiting');
    await world.call('POST /api/tenants/{name}/start', { params: { name: 'after' } });
    await world.waitUntilNotRunning('after', /no slot/);
    await world.call('PUT /api/slots', { body: { limit: 64 } });
    await world.started('after');
  });

  it('a lowered limit takes slots from the newest tenants, and a raised one gives them back', async () => {
    const running = await world.schedulers();
    await world.call('PUT /api/slots', { body: { limit: 2 } });
    await until('one is left', async () => (await world.schedulers()) === 1);
    await world.call('PUT /api/slots', { body: { limit: 64 } });
    await until('all are back', async () => (await world.schedulers()) === running);
  });
});

describe('kill -9', () => {
  it('the schedulers of a killed host start in another', async () => {
    const [host = 0] = await world.hosts();
    process.kill(host, 'SIGKILL');
    await until('another host is there', async () => !(await world.hosts()).includes(host));
    await world.started('default');
    await world.started('after');
  });

  it('hosts survive a killed launcher, and the next one adopts them and handles messages sent meanwhile', async () => {
    const [launcher] = world.launchers;
    const before = await world.started('default');
    launcher?.signal('SIGSTOP');
    const { message } = await world.call('POST /api/tenants/{name}/stop', { params: { name: 'after' } });
    expect(message).toMatchObject({ kind: 'stop', outcome: null });
    expect(await world.schedulers()).toBeGreaterThan(1);
    const standby = world.addLauncher();
    await world.waitUntilNotRunning('after', /stopped by user/);
    const { items } = await world.call('GET /api/tenants/{name}/messages', { params: { name: 'after' } });
    expect(items[0]).toMatchObject({ kind: 'stop', outcome: 'stopped' });
    expect(await world.started('default')).toEqual(before);
    launcher?.signal('SIGCONT');
    const { active } = await world.call('GET /api/launcher');
    expect(active?.pid).toBe(standby.pid);
  });

  it('a stop survives the launcher', async () => {
    for (const launcher of world.launchers) launcher.signal('SIGKILL');
    await world.call('POST /api/tenants', { body: { name: 'later' } });
    await world.started('later');
    await world.waitUntilNotRunning('after', /stopped by user/);
    await world.call('POST /api/tenants/{name}/start', { params: { name: 'after' } });
    await world.started('after');
  });
});
