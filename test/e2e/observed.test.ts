/** What `up` reports while its database, disk or host fails or a lock blocks it, and how soon it recovers. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientConfig, onDatabase } from '../../src/postgres/address.ts';
import { descendants } from '../harness/process-tree.ts';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { controlAddress } from '../harness/second-tenant.ts';
import { until } from '../harness/until.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

/** The bound is 2 s; a busy machine is allowed as much again. */
const boundMs = 4_000;

const tenant = () => product.call('GET /api/tenants/{name}', { params: { name: 'default' } });

async function ask(path: string): Promise<{ status: number; detail: string; ms: number }> {
  const beganMs = performance.now();
  const headers = { authorization: `Bearer ${product.rootKey}` };
  const response = await fetch(product.url + path, { headers });
  const { detail = '' } = (await response.json()) as { detail?: string };
  return { status: response.status, detail, ms: performance.now() - beganMs };
}

async function inControl(statements: string): Promise<void> {
  const client = new Client(clientConfig(await controlAddress(product.home), 'psql'));
  await client.connect();
  await client.query(`set search_path to control; ${statements}`);
  await client.end();
}

async function postgresPids(): Promise<number[]> {
  const lines = await readFile(join(product.home, 'postgres', 'postmaster.pid'), 'utf8');
  return descendants(Number(lines.split('\n')[0]));
}

async function freeze(): Promise<() => void> {
  const pids = await postgresPids();
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  return () => {
    for (const pid of pids) process.kill(pid, 'SIGCONT');
  };
}

const isWell = () => until('it is well', async () => (await ask('/healthz')).status === 200 || undefined, 60_000);

it('every status endpoint reports a frozen PostgreSQL within 2 s', async () => {
  const thaw = await freeze();
  try {
    for (const path of ['/healthz', '/readyz', '/api/tenants', '/api/explain/tenant/default', '/api/overview']) {
      const { status, detail, ms } = await ask(path);
      expect([path, status, detail]).toEqual([path, 503, expect.stringContaining('the database has not answered')]);
      expect(ms).toBeLessThan(boundMs);
    }
    const beganMs = performance.now();
    const status = await millrace(['status'], { home: product.home });
    expect([status.code, status.stdout]).toEqual([
      1,
      expect.stringMatching(/^health: +not ok: the database has not answered since/m),
    ]);
    expect(performance.now() - beganMs).toBeLessThan(boundMs);
    const why = await millrace(['tenant', 'why', 'default'], { home: product.home });
    expect([why.code === 0, why.stderr]).toEqual([
      false,
      expect.stringContaining('the database has not answered since'),
    ]);
  } finally {
    thaw();
  }
  await isWell();
});

it('`up` reports that writes are refused, and why, although the last state is still STARTED', async () => {
  const tables = ['gateway', 'host', 'scheduler', 'launch', 'launcher_lease', 'launcher'];
  await inControl(`
    create function full_disk() returns trigger language plpgsql as $$
    begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    ${tables.map((table) => `create trigger full_disk before insert or update on ${table} execute function full_disk()`).join(';')}`);
  const { detail } = await until('it is not well', async () => {
    const health = await ask('/healthz');
    return health.status === 503 && health.detail.includes('refuses writes') ? health : undefined;
  });
  expect(detail).toMatch(/^the database refuses writes since \S+Z: the disk of the database is full/);
  expect((await ask('/readyz')).detail).toBe(detail);
  expect(await tenant()).toMatchObject({
    standing: 'will_run',
    reason_code: 'database',
    summary: expect.stringContaining('the disk of the database is full') as unknown,
    reason: expect.stringContaining('No space left on device') as unknown,
  });
  const why = await millrace(['tenant', 'why', 'default'], { home: product.home });
  expect(why.stdout).toContain('No space left on device');
  expect((await millrace(['status'], { home: product.home })).code).toBe(1);
  await inControl('drop function full_disk cascade');
  await isWell();
});

it('`up` reports how its host ended', async () => {
  const { host } = await tenant();
  process.kill(host?.pid ?? 0, 'SIGKILL');
  await until('the host is missed', async () => {
    const { reason } = await tenant();
    return reason?.includes('its host was killed (SIGKILL)') || undefined;
  });
  await isWell();
});

const tenantAddress = async () => onDatabase(await controlAddress(product.home), 'millrace_default');

/** A session that blocks all writes of runs. */
async function lockRuns(): Promise<{ pid: number; release(): Promise<void> }> {
  const client = new Client(clientConfig(await tenantAddress(), 'a report'));
  client.on('error', () => {});
  await client.connect();
  await client.query('set lock_timeout = 0; begin; lock table millrace.live in share mode');
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return { pid: rows[0]?.pid ?? 0, release: () => client.end() };
}

async function inTenant(statement: string): Promise<void> {
  const client = new Client(clientConfig(await tenantAddress(), 'psql'));
  await client.connect();
  await client.query(statement);
  await client.end();
}

/** Fires every second. */
async function applyTicking(): Promise<void> {
  const start = new Date(Math.floor(Date.now() / 1_000) * 1_000).toISOString();
  await product.call('POST /api/projects', { body: { name: 'observed' } }).catch(() => {});
  await product.call('POST /api/jobs', {
    body: JSON.stringify({
      project: 'observed',
      name: 'ticking',
      triggers: [{ name: 'each', start, period: '1s', catchup: 'none' }],
      tasks: [{ name: 'a', depends: ['trigger/each'] }],
    }),
  });
}

const notRunning = () =>
  until(
    'it does not run',
    async () => {
      const { state, summary, standing, reason_code: code } = await tenant();
      return standing === 'will_run' ? { state, summary, code } : undefined;
    },
    60_000,
  );

it('the holder of a lock that a scheduler waits for is named, and the scheduler runs once it is released', async () => {
  await applyTicking();
  const lock = await lockRuns();
  const { summary: first } = await until('it is reported beside "runs"', async () => {
    const seen = await tenant();
    return /(?:firing|reading) triggers has made no progress since/.test(seen.summary) ? seen : undefined;
  });
  const holder = `it waits for a lock held by backend ${lock.pid} (a report, role `;
  expect(first).toMatch(/^runs, but /);
  expect(first).toContain(holder);
  const { state, summary, code } = await notRunning();
  expect([state, code, summary]).toEqual(['ALLOCATED', 'failing', expect.stringContaining(holder)]);
  expect((await ask('/healthz')).status).toBe(503);
  const why = await millrace(['tenant', 'why', 'default'], { home: product.home });
  expect(why.stdout).toContain(holder);
  expect(why.stdout).toContain(`select pg_terminate_backend(${lock.pid})`);
  const status = await millrace(['status'], { home: product.home });
  expect([status.code, status.stdout]).toEqual([1, expect.stringContaining(holder)]);
  const { host } = await tenant();
  await lock.release();
  await isWell();
  // the scheduler was kept
  expect(await tenant()).toMatchObject({ state: 'STARTED', standing: 'runs', host });
}, 180_000);

it('a scheduler whose statements time out behind a lock every 16 s does not count as running', async () => {
  await inTenant(`alter role current_user set lock_timeout = '16s'`);
  try {
    // returns once it runs with the new setting
    expect(await millrace(['tenant', 'restart', 'default'], { home: product.home })).toMatchObject({ code: 0 });
    const lock = await lockRuns();
    const { summary } = await notRunning();
    expect(summary).toMatch(/^will run: .*(?:canceling statement due to lock timeout|it waits for a lock)/);
    // it is tried again behind the same lock
    const again = await until(
      'its next attempt waits',
      async () => {
        const seen = await tenant();
        return seen.state === 'ALLOCATED' && seen.summary.includes(`backend ${lock.pid}`) ? seen : undefined;
      },
      60_000,
    );
    expect(again.standing).toBe('will_run');
    await lock.release();
  } finally {
    await inTenant('alter role current_user reset lock_timeout');
  }
  await isWell();
}, 180_000);
