/** A launcher that is killed while it restarts a tenant: the standby launcher finishes the restart. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isProcessRunning } from '../../src/kernel/process/process-stat.ts';
import { sql } from '../../src/kernel/sql.ts';
import { TestInstallation } from '../harness/installation.ts';
import { until } from '../harness/until.ts';

/** A lease lasts 5 s and is looked at every second. The rest is for a busy machine; an order is given up after 30 s. */
const takenOverMs = 20_000;
let world: TestInstallation;
beforeAll(async () => {
  world = await TestInstallation.start({ launchers: 2 });
  for (const name of ['a', 'b']) await world.call('POST /api/tenants', { body: { name } });
  for (const name of ['a', 'b']) await world.started(name);
}, 120_000);
afterAll(() => world?.close());

/** The pid of the active launcher. One that was killed holds the lease until it expires. */
const activePid = (): Promise<number> =>
  until('a launcher is active', async () => {
    const row = await world.inControl((db) =>
      db.maybeOne<{ pid: number }>(sql`select pid from launcher join launcher_lease on holder = launcher.id`),
    );
    return row !== undefined && isProcessRunning(row.pid) ? row.pid : undefined;
  });

/** Launchers that beat, the active one among them. */
const findLaunchers = (): Promise<unknown[]> =>
  world.inControl((db) => db.rows(sql`select from launcher where beat_at > clock_timestamp() - interval '3 seconds'`));

describe('launcher that is killed during a restart', () => {
  it.each([
    ['when the scheduler was told to end', sql`ending`],
    ['when the scheduler has ended', sql`not ending and not ordered`],
    ['when the scheduler was ordered again', sql`ordered and state <> 'STARTED'`],
  ])(
    'a launcher that is killed %s leaves a tenant that its successor starts at once',
    async (_, reached) => {
      await until('another stands by', async () => (await findLaunchers()).length === 2);
      const pid = await activePid();
      const { order } = await world.started('a');
      await world.call('POST /api/tenants/{name}/restart', { params: { name: 'a' } });
      await until('the restart is under way', async () => {
        const { there } = await world.inControl((db) =>
          db.one<{ there: boolean }>(sql`
          select (${reached}) or order_no > ${order} as there from launch join tenant on tenant.id = tenant_id where name = 'a'`),
        );
        return there || undefined;
      });
      process.kill(pid, 'SIGKILL');
      const again = await world.started('a', takenOverMs);
      expect(again.order).toBe(order + 1);
    },
    90_000,
  );
});
