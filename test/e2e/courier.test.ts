/** `up` starts a courier when the first subscriber exists, restarts it, and takes it along when it ends or is killed. */
import { afterAll, expect, it } from 'vitest';
import { isProcessRunning } from '../../src/kernel/process/process-stat.ts';
import { onClient, sql } from '../../src/kernel/sql.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { addressOfUrl } from '../../src/postgres/address.ts';
import { type FreshDatabase, makeFreshDatabase } from '../harness/fresh-database.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

let product: Product | undefined;
let database: FreshDatabase | undefined;
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
  await database?.close();
});

it('a courier starts with the first subscriber, is restarted, and ends when `up` is killed', async () => {
  database = await makeFreshDatabase();
  const url = database.address.url;
  product = await startProduct({ env: { MILLRACE_DATABASE_URL: url } });
  const inControl = <T>(work: (db: ReturnType<typeof onClient>) => Promise<T>): Promise<T> =>
    withClient(addressOfUrl(url), async (client) => {
      await client.query('set search_path to control');
      return work(onClient(client));
    });
  const pids = (): Promise<number[]> =>
    inControl(async (db) => (await db.rows<{ pid: number }>(sql`select pid from courier`)).map(({ pid }) => pid));
  expect(await pids()).toEqual([]);
  await inControl((db) =>
    db.exec(sql`insert into bus (tenant_id, subscribers, changed_at) select id, 1, now() from tenant`),
  );
  const first = await until('a courier is registered', async () => (await pids())[0]);
  const installation = await product.call('GET /api/installation');
  expect(installation).toMatchObject({ couriers: [{ version: installation.version }], warnings: [] });
  process.kill(first, 'SIGKILL');
  const second = await until('another courier is registered', async () => (await pids()).find((pid) => pid !== first));
  product.child.kill('SIGKILL');
  await until('the courier ends with `up`', () => !isProcessRunning(second) || undefined);
});
