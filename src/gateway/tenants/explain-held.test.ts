/** Explanations of a waiting upgrade, an interrupted drop of a database, and a clock step. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { callEndpoint, type Entry, insertHost, insertLaunch } from '../../../test/harness/tenant-calls.ts';
import { engineOf, inDatabase, makeTestLife, type TestLife } from '../../../test/harness/tenant-life.ts';
import { until } from '../../../test/harness/until.ts';
import { engine } from '../../engine/engine.ts';
import { sql } from '../../kernel/sql.ts';
import { reasons } from '../../control/reasons.ts';

const newer = engineOf('2.0.0', ['alter table job add column more integer']);
let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, newer]);
});
afterAll(() => life.close());

async function make(): Promise<{ readonly name: string; readonly launched: (entry: Entry) => Promise<void> }> {
  const name = life.name();
  const made = (await callEndpoint(life, 'POST /api/tenants', { name })).json as { tenant?: { id: string } };
  return { name, launched: (entry) => insertLaunch(life, made.tenant?.id ?? '', entry) };
}
const explained = async (name: string) => (await callEndpoint(life, `GET /api/explain/tenant/${name}`)).json;

it('the explanation names the session that blocks an upgrade, and how to end it', async () => {
  const { name, launched } = await make();
  await inDatabase(life, name, async (db, client) => {
    await client.query("set application_name to 'a report'; begin; select count(*) from millrace.job");
    const { pid } = await db.one<{ pid: number }>(sql`select pg_backend_pid() as pid`);
    const upgrading = callEndpoint(life, `POST /api/tenants/${name}/upgrade`, { to: newer.version });
    const { xid } = await until('the upgrade waits', () =>
      life.control.maybeOne<{ xid: string }>(sql`
        select xid::text from message
         where tenant = ${name} and exists (select from pg_locks where pid = message.pid and not granted)`),
    );
    await launched({ state: 'ALLOCATED', reason: reasons.waitingOn(xid), waitOn: xid });
    expect(await explained(name)).toMatchObject({
      sentence: expect.stringContaining('waits: upgrade to 2.0.0') as unknown,
      advice: expect.stringMatching(
        `^it waits for locks of backend ${pid} \\(a report, .* or end it \\(select pg_terminate_backend\\(${pid}\\)\\)$`,
      ) as unknown,
      facts: { blockers: [{ what: 'migration' }, { what: 'holder', pid }] },
    });
    await client.query('commit');
    expect((await upgrading).status).toBe(200);
  });
});

it('the only advice after an interrupted drop of the database is another drop', async () => {
  const { name, launched } = await make();
  await launched({ reason: reasons.refusesConnections });
  expect(await explained(name)).toMatchObject({
    advice: `alter database "${name}" with is_template false allow_connections true`,
  });
  await inDatabase(life, 'postgres', (db) =>
    db.exec(sql`update pg_database set datconnlimit = -2 where datname = ${name}`),
  );
  expect(await explained(name)).toMatchObject({
    advice: expect.stringContaining(`\`millrace tenant drop ${name}\``) as unknown,
  });
});

it('a step of the clock of the server is named beside a tenant that runs', async () => {
  const { name, launched } = await make();
  await launched({ state: 'STARTED', hostId: await insertHost(life) });
  const clockFault = () => "the database server's clock was set back by 60 s";
  const { json } = await callEndpoint({ ...life, clockFault }, `GET /api/explain/tenant/${name}`);
  expect(json).toMatchObject({
    summary: `runs, but ${clockFault()}`,
    sentence: expect.stringMatching(
      / runs at version .*, but the database server's clock was set back by 60 s\.$/,
    ) as unknown,
  });
});
