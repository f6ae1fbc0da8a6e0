/** A user backfills a range of instants: previews it, waits for it, reruns what failed, and cancels another backfill. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const job = `
project: shop
name: daily
triggers:
  - {name: day, start: 2026-01-01T00:00:00Z, end: 2026-02-01T00:00:00Z, period: 1d, catchup: none}
tasks:
  - name: load
    depends: [trigger/day]
    pool: warehouse
    process: {command: [sh, -c, 'test {{instant.date}} != 2026-01-03 || test -e "$0"', MARK]}
  - name: report
    depends: [task/load]
`;

let product: Product;
let mark: string;
const cli = (...args: string[]) => millrace(args, { home: product.home });
const json = async (...args: string[]): Promise<unknown> => JSON.parse((await cli(...args, '--json')).stdout);

beforeAll(async () => {
  product = await startProduct();
  mark = join(product.taskFolder, 'repaired');
  await mkdir(join(product.home, 'jobs'));
  await writeFile(join(product.home, 'jobs', 'daily.yaml'), job.replace('MARK', mark));
  expect(await cli('apply', '-f', join(product.home, 'jobs'), '--create-project')).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

const range = ['--first', '2026-01-01T00:00:00Z', '--last', '2026-01-05T00:00:00Z'];

it('`backfill` previews the instants, fires them, and reports that one day failed', async () => {
  const dry = await cli('backfill', 'shop/daily', ...range, '--dry-run');
  expect([dry.code, dry.stdout.match(/^2026-01-0\dT00:00:00Z +day$/gm)?.length]).toEqual([0, 5]);
  expect(await cli('pool', 'set', 'warehouse', '3')).toMatchObject({ code: 0, stdout: 'warehouse has 3 places\n' });
  const ran = await cli('backfill', 'shop/daily', ...range, '--name', 'january', '--wait');
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('done: 5 of 5 instants fired; ')]);
  expect(ran.stderr).toContain('runs: 9 of 9 done (1 failed)');
  // the same request again returns the same backfill, which is over
  const again = await cli('backfill', 'shop/daily', ...range, '--name', 'january');
  expect(again.stdout.trim()).toBe(ran.stdout.split(' ')[0]);
  expect(await json('backfills', 'shop/daily')).toHaveLength(1);
  expect(await json('instants', 'shop/daily')).toMatchObject([
    { instant: '2026-01-05T00:00:00.000Z', state: 'success' },
    { state: 'success' },
    { instant: '2026-01-03T00:00:00.000Z', state: 'failure' },
    { state: 'success' },
    { state: 'success' },
  ]);
});

it('a rerun of the failed instants succeeds', async () => {
  await writeFile(mark, '');
  expect((await cli('activate', 'shop/daily', '--state', 'failure')).stderr).toBe('1 token activated\n');
  await until('the day has succeeded', async () => {
    const states = (await cli('instants', 'shop/daily')).stdout.match(/^2026-\S+ +success/gm);
    return states?.length === 5 || undefined;
  });
});

it('a blocked backfill can be cancelled together with its runs', async () => {
  await cli('pool', 'set', 'warehouse', '0');
  const { stdout } = await cli('backfill', 'shop/daily', ...range, '--missing', '--last', '2026-01-09T00:00:00Z');
  const id = stdout.trim();
  await until('its runs wait', async () => {
    const { runs, instants } = await product.call('GET /api/backfills/{id}', { params: { id } });
    return (runs.waiting === 4 && instants.skipped === 5) || undefined;
  });
  expect((await cli('pool', 'list')).stdout).toMatch(/^warehouse +0 +0 +4$/m);
  const cancelled = await cli('backfill', 'cancel', id);
  // its end may be recorded a few milliseconds later
  expect(cancelled.stdout).toMatch(
    /^cancelled: 4 of 9 instants fired, 5 skipped; runs(?: so far)?: 4 of 4 done \(4 cancelled\)\n$/,
  );
  expect((await cli('pool', 'delete', 'warehouse')).stderr).toContain('shop/daily/task/load');
  await until('it has ended', async () => {
    const { ended_at } = await product.call('GET /api/backfills/{id}', { params: { id } });
    return ended_at ?? undefined;
  });
});
