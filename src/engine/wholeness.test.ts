/** A schema of which a part is missing, as it is while it is being restored, is not taken up. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { withClient } from '../postgres/databases.ts';
import { engine } from './engine.ts';
import { countParts, madeByMigrations } from './wholeness.ts';

let tenant: Awaited<ReturnType<typeof makeInstalledTenant>>;
beforeAll(async () => {
  tenant = await makeInstalledTenant();
});
afterAll(() => tenant.close());

it('counts what the migrations make', () =>
  withClient(tenant.address, async (client) => expect(await countParts(client)).toBe(madeByMigrations)));

it('is whole with further parts of the event log, and with indexes of somebody’s own', () =>
  withClient(tenant.address, async (client) => {
    await client.query('set search_path to millrace');
    await client.query('select add_event_partition(7)');
    expect(await countParts(client)).toBe(madeByMigrations);
    await client.query('create index own on job (name)');
    expect(await engine.pending(client)).toEqual([]);
    await client.query('drop index own');
  }));

it.each([
  ['a foreign key', 'alter table millrace.task drop constraint task_job_id_fkey'],
  ['an index', 'drop index millrace.run_failed'],
])('is not whole without %s', (_, statement) =>
  withClient(tenant.address, async (client) => {
    await client.query('begin');
    await client.query(statement);
    await expect(engine.pending(client)).rejects.toThrow(
      '1 of its indexes and keys are missing: it is still being restored',
    );
    await client.query('rollback');
    expect(await engine.pending(client)).toEqual([]);
  }),
);
