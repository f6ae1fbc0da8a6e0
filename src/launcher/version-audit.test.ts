import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../test/harness/fresh-database.ts';
import { append, tenantTopic } from '../events/append.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { sendMessage } from '../control/messages.ts';
import { isVersionRecorded, noteVersions, type VersionEvent } from './version-audit.ts';

let control: ControlDatabase;
beforeAll(async () => {
  control = await makeControlDatabase();
});
afterAll(() => control.close());

const at = new Date();
let tenant: { readonly id: string; readonly name: string };
beforeEach(async () => {
  const id = newId();
  tenant = { id, name: `tenant-${id}` };
  await control.db.exec(sql`
    insert into tenant (id, name, database, created_at) values (${id}, ${tenant.name}, ${id}, ${at})`);
  await control.db.exec(sql`
    insert into launch (tenant_id, state, code, reason, changed_at) values (${id}, 'DISABLED', 'starting', '', ${at})`);
});

const find = (version: string | null): Promise<VersionEvent[]> =>
  noteVersions(control.db, [{ tenantId: tenant.id, name: tenant.name, version }]);
const writeEvent = (type: string, body: object): Promise<void> =>
  control.db.transaction((tx) => append(tx, tenantTopic, [{ type, subject: tenant.id, body: { ...body } }], by));
const by = { actor: 'key:ann', at };
const restart = (sender: string, cause: string): Promise<number> =>
  sendMessage(control.db, { kind: 'restart', tenant, sender, cause, at });
const changed = (from: string | null, to: string | null, actor: string) => {
  const body = { name: tenant.name, from, to };
  return [{ actor, draft: { type: 'tenant.version_changed', subject: tenant.id, body } }];
};

it('a version that is found gets one event, with the version before', async () => {
  expect(await find(null)).toEqual([]);
  expect(await find('1.0.0')).toEqual(changed(null, '1.0.0', 'sql'));
  expect(await find('1.0.0')).toEqual([]);
  expect(await find('1.0.0+build')).toEqual(changed('1.0.0', '1.0.0+build', 'sql'));
  expect(await find(null)).toEqual(changed('1.0.0+build', null, 'sql'));
});

it('a version that a command has recorded gets no second event; a later one does', async () => {
  await writeEvent('tenant.created', { version: '1.0.0' });
  expect(await find('1.0.0')).toEqual([]);
  await writeEvent('tenant.upgraded', { from: '1.0.0', to: '2.0.0' });
  expect(await find('2.0.0')).toEqual([]);
  await writeEvent('tenant.stopped', { from: 'on', to: 'off' });
  await writeEvent('tenant.released', { version: '2.0.0' });
  expect(await find(null)).toEqual([]);
  expect(await find('2.0.0')).toEqual(changed(null, '2.0.0', 'sql'));
});

it('a failed adoption does not count as a recorded version', async () => {
  await writeEvent('tenant.adopted', { version: '1.0.0' });
  await writeEvent('tenant.adoption_failed', { why: 'so' });
  expect(await find('1.0.0')).toEqual(changed(null, '1.0.0', 'sql'));
});

it('the event for a command that died names its sender, if its message was about this version', async () => {
  await restart('key:ann', 'upgrade to 2.0.0');
  expect(await find('2.0.0')).toEqual(changed(null, '2.0.0', 'key:ann'));
  expect(await find('3.0.0')).toEqual(changed('2.0.0', '3.0.0', 'sql'));
  await restart('key:ann', 'upgrade to 4.0.0');
  await restart('sql', 'a migration is under way (pid 7)');
  expect(await find('4.0.0')).toEqual(changed('3.0.0', '4.0.0', 'sql'));
  await restart('key:bob', 'release');
  expect(await find(null)).toEqual(changed('4.0.0', null, 'key:bob'));
});

it('a command and the launcher that run concurrently write one event', async () => {
  const asked = (): Promise<boolean> => control.db.transaction((tx) => isVersionRecorded(tx, tenant.id, '2.0.0'));
  await writeEvent('tenant.created', { version: '1.0.0' });
  expect(await asked()).toBe(false);
  // the launcher holds the tenant from before its check until it has written the event
  let waited: Promise<boolean> | undefined;
  await control.db.transaction(async (tx) => {
    await tx.exec(sql`select from tenant where id = ${tenant.id} for key share`);
    const [found] = await noteVersions(tx, [{ tenantId: tenant.id, name: tenant.name, version: '2.0.0' }]);
    waited = asked();
    if (found !== undefined) await append(tx, tenantTopic, [found.draft], { actor: found.actor, at });
  });
  expect(await waited).toBe(true);
});
