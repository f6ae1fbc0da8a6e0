/** What `up` says of itself while its database, its disk or its host fails, and how soon it recovers. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientConfig } from '../../src/postgres/address.ts';
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

it('says within 2 s that PostgreSQL is frozen, wherever it is asked', async () => {
  const thaw = await freeze();
  try {
    for (const path of ['/healthz', '/readyz', '/api/tenants', '/api/explain/tenant/default', '/api/overview']) {
      const { status, detail, ms } = await ask(path);
      expect([path, status, detail]).toEqual([path, 503, expect.stringContaining('the database has not answered')]);
      expect(ms).toBeLessThan(boundMs);
    }
    const status = await millrace(['status'], { home: product.home });
    expect([status.code, status.stdout]).toEqual([
      1,
      expect.stringMatching(/^health: +not ok: the database has not answered since/m),
    ]);
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

it('says that writes are refused, and why, while the last state is still STARTED', async () => {
  const tables = ['gateway', 'host', 'scheduler', 'launch', 'launcher_lease', 'launcher'];
  await inControl(`
    create function full_disk() returns trigger language plpgsql as $$
    begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    ${tables.map((table) => `create trigger full_disk before insert or update on ${table} execute function full_disk()`).join(';')}`);
  const { detail } = await until('it is not well', async () => {
    const health = await ask('/healthz');
    return health.status === 503 && health.detail.includes('refuses writes') ? health : undefined;
  });
  expect(detail).toMatch(/^the database refuses writes since \S+Z \(its disk is full\)$/);
  expect((await ask('/readyz')).detail).toBe(detail);
  expect(await tenant()).toMatchObject({
    standing: 'will_run',
    reason_code: 'database',
    summary: expect.stringContaining('No space left on device') as unknown,
  });
  const why = await millrace(['tenant', 'why', 'default'], { home: product.home });
  expect(why.stdout).toContain('No space left on device');
  expect((await millrace(['status'], { home: product.home })).code).toBe(1);
  await inControl('drop function full_disk cascade');
  await isWell();
});

it('says how its host ended', async () => {
  const { host } = await tenant();
  process.kill(host?.pid ?? 0, 'SIGKILL');
  await until('the host is missed', async () => {
    const { reason } = await tenant();
    return reason?.includes('its host was killed (SIGKILL)') || undefined;
  });
  await isWell();
});
