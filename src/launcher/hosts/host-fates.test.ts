/** Hosts that are gone are found at once, and their tenants are told how they ended. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeStage, session, type Stage } from '../../../test/harness/launching.ts';
import { until } from '../../../test/harness/until.ts';
import { sql } from '../../kernel/sql.ts';

let stage: Stage;
beforeEach(async () => {
  stage = await makeStage();
});
afterEach(() => stage.close());

const db = () => stage.control.db;
/** Its last beat was so long ago. */
const silence = (id: string, ago: string) =>
  db().exec(sql`update host set beat_at = clock_timestamp() - ${ago}::interval where id = ${id}`);

/** When the launcher last renewed its lease, in milliseconds. */
const renewals = () =>
  db().one<{ renewedMs: number }>(
    sql`select (extract(epoch from renewed_at) * 1000)::float8 as "renewedMs" from launcher_lease`,
  );

it('A host whose process is gone is lost at once, however fresh its last beat is, and the reason says how it ended', async () => {
  const host = await stage.host();
  const tenant = await stage.tenant('a');
  await stage.launch({ embedded: true });
  await stage.becomes(tenant, 'STARTED');
  await host.freeze();
  await silence(host.id, '0 seconds');
  stage.fates.set(host.pid, 'ran out of memory (heap limit 512 MiB)');
  const { reason } = await stage.becomes(tenant, 'DISABLED', 'crashed');
  expect(reason).toMatch(/^crashed: its host ran out of memory \(heap limit 512 MiB\)$/);
});

it('A host elsewhere whose beat is late is lost once its connections are gone, and not before', async () => {
  const host = await stage.host();
  const tenant = await stage.tenant('a');
  await stage.launch({ embedded: true });
  await stage.becomes(tenant, 'STARTED');
  const lock = await session(tenant.address);
  await lock.query(`set application_name to 'millrace host ${host.id.slice(-12)} 1.0.0 a'`);
  await host.freeze();
  await silence(host.id, '3 seconds');
  const { renewedMs } = await renewals();
  await until('some turns were taken', async () => (await renewals()).renewedMs - renewedMs > 2_000 || undefined);
  expect(await stage.view(tenant)).toMatchObject({ state: 'STARTED' });
  await lock.end();
  const { reason } = await stage.becomes(tenant, 'DISABLED', 'crashed');
  expect(reason).toContain('its host is gone: all its connections have ended');
});

it('A host that is about to end says why of each of its schedulers', async () => {
  const host = await stage.host();
  const tenant = await stage.tenant('a');
  await stage.launch({ embedded: true });
  await stage.becomes(tenant, 'STARTED');
  await host.freeze();
  await db().exec(sql`
    update scheduler set code = 'crashed', reason = 'its host ended: it uses 900 MiB of memory, more than 768'`);
  await db().exec(sql`update host set leaving = true, beat_at = '-infinity' where id = ${host.id}`);
  const { reason } = await stage.becomes(tenant, 'DISABLED', 'crashed');
  expect(reason).toContain('its host ended: it uses 900 MiB of memory, more than 768');
});

it('An engine whose code cannot be loaded is the reason, with the error of loading it', async () => {
  const tenant = await stage.tenant('a');
  await stage.launch({
    hosts: {
      spawn(_, onEnd) {
        setTimeout(() => onEnd('exit 1'), 10);
        return 99_999_999;
      },
      kill: () => {},
      fate: () => undefined,
    },
    engines: {
      usable: async () => ({ ok: true }),
      diagnose: async (version) => `engine ${version} cannot be used: boom`,
    },
  });
  const { reason } = await stage.becomes(tenant, 'ALLOCATED', 'no_engine');
  expect(reason).toBe('no engine: engine 1.0.0 cannot be used: boom');
});
