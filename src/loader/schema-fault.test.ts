/** Tenants whose schema does not match the engine, is incomplete or is read-only. */
import type { Pool } from 'pg';
import { expect, it } from 'vitest';
import { makeContext } from '../../test/harness/engine-context.ts';
import { textWith } from '../../test/harness/expected.ts';
import { makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { HandTime } from '../../test/harness/hand-time.ts';
import type { Scheduler } from '../contract/engine.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { withClient } from '../postgres/databases.ts';
import { runScheduler, usualLimits } from '../hosts/tenant-scheduler.ts';

it('a scheduler does not start until the schema is complete and writable', async () => {
  const tenant = await makeInstalledTenant();
  const { address } = tenant;
  const time = new HandTime('2026-06-01T00:00:00Z');
  let made = 0;
  const start = async (): Promise<never> => {
    made += 1;
    throw new Error('started');
  };
  const scheduler = (): Scheduler => ({ name: 'any', start, stop: async () => {}, probe: async () => {} });
  const ending = () =>
    runScheduler(
      {
        address,
        application: 'millrace tests',
        version: engineVersion,
        allowPooler: false,
        poolSize: 4,
        engines: { find: async () => ({ ok: true, engine: { ...engine, scheduler } }) },
        contextFor: (pool: Pool) => makeContext({ address, pool, time }),
        limits: usualLimits,
        onWait: () => {},
        onRunning: () => {},
        onTrouble: () => {},
        onHang: () => {},
      },
      new AbortController().signal,
    );
  const move = (from: number, to: number) =>
    withClient(address, (client) =>
      client.query(`update millrace.migration set number = ${to} where number = ${from}`),
    );
  await move(10, 99);
  const message = textWith(`its schema does not match engine ${engineVersion}: `);
  expect(await ending()).toMatchObject({ code: 'no_engine', message });
  expect(made).toBe(0);
  await move(99, 10);
  const execute = (statement: string) => withClient(address, (client) => client.query(statement));
  await execute('create table millrace.kept as table millrace.migration; truncate millrace.migration');
  expect(await ending()).toMatchObject({ code: 'no_engine', message: textWith('it is still being restored') });
  await execute('insert into millrace.migration table millrace.kept; drop table millrace.kept');
  await execute('alter table millrace.task drop constraint task_job_id_fkey');
  expect(await ending()).toMatchObject({ code: 'no_engine', message: textWith('a restore is still under way') });
  await execute('alter table millrace.task add foreign key (job_id) references millrace.job');
  await execute(`alter database ${address.database} set default_transaction_read_only = on`);
  expect(await ending()).toMatchObject({ code: 'crashed', message: textWith('its database is read-only') });
  await execute(`begin read write; alter database ${address.database} reset default_transaction_read_only; commit`);
  expect(made).toBe(0);
  expect(await ending()).toMatchObject({ code: 'crashed', message: 'started' });
  expect(made).toBe(1);
  await tenant.close();
});
