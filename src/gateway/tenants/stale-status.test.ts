import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  callEndpoint,
  insertHost,
  insertLaunch,
  type EndpointAnswer,
  withoutLauncher,
} from '../../../test/harness/tenant-calls.ts';
import { makeTestLife, type TestLife } from '../../../test/harness/tenant-life.ts';
import { engineVersion } from '../../engine/engine.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { formatReason } from '../../control/format-reason.ts';
import { reasons, storeReason } from '../../control/reasons.ts';
import { isStarted } from '../../control/queries.ts';
import { insertTenant } from '../../tenants/queries.ts';
import { sendMessage } from '../../control/messages.ts';

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife();
});
afterAll(() => life.close());

let name: string;
let id: string;
let hostId: string;
beforeEach(async () => {
  name = life.name();
  id = newId();
  await insertTenant(life.control, { id, name, database: name, ownHost: false, at: new Date() });
  hostId = await insertHost(life);
  await insertLaunch(life, id, { state: 'STARTED', version: engineVersion, hostId });
});

const ask = (call: string): Promise<EndpointAnswer> => callEndpoint(life, call);
const shown = async () => (await ask(`GET /api/tenants/${name}`)).json;
const why = async () => (await ask(`GET /api/explain/tenant/${name}`)).json;
const like = (pattern: RegExp): unknown => expect.stringMatching(pattern);

/** Its host's last heartbeat was this long ago. */
async function silentFor(seconds: number): Promise<void> {
  await life.control.exec(sql`
    update host set beat_at = clock_timestamp() - ${seconds} * interval '1 second' where id = ${hostId}`);
}

/** Its host's report on the present order, or on an older one. */
async function word(phase: string, reason: string | null, orderNo = 0): Promise<void> {
  const code = phase === 'ended' ? 'unreachable' : null;
  await life.control.exec(sql`
    insert into scheduler (tenant_id, id, host_id, order_no, phase, code, reason, engine, changed_at, beat_at)
    values (${id}, ${newId()}, ${hostId}, ${orderNo}, ${phase}, ${code}, ${reason}, ${engineVersion},
            clock_timestamp(), clock_timestamp() - interval '1 hour')`);
}

describe('tenants that the launcher has left as STARTED', () => {
  it('a tenant is shown as running while its host sends heartbeats, with a note that no launcher is active', async () => {
    await silentFor(7);
    expect(await shown()).toMatchObject({ state: 'STARTED', reason: null, reason_code: null });
    expect(await why()).toMatchObject({
      sentence: like(/^The scheduler of \S+ runs .*, process 4711\.$/),
      advice: null,
    });
    await withoutLauncher(life, async () => {
      expect(await shown()).toMatchObject({ state: 'STARTED', reason: 'no launcher is active', reason_code: null });
      expect(await why()).toMatchObject({
        sentence: like(/^No launcher is active, so nothing changes: the scheduler of \S+ runs at .*, process 4711\.$/),
        advice: like(/^start one: `millrace launcher`/),
        facts: { launcher_active: false },
      });
    });
  });

  it('a tenant is not shown as running once its host is silent for as long as a launcher waits', async () => {
    await silentFor(9);
    const silence = /^not heard of since 20\S+Z: its host \(box7, process 4711\) is silent/;
    expect(await shown()).toMatchObject({ state: 'STARTED', reason_code: 'silent', reason: like(silence) });
    expect(await why()).toMatchObject({
      reason_code: 'silent',
      sentence: like(/ is silent; the launcher sees to it\.$/),
    });
    await withoutLauncher(life, async () => {
      expect(await shown()).toMatchObject({ reason: like(/ is silent; no launcher is active$/) });
      expect(await why()).toMatchObject({
        sentence: like(
          /^The scheduler of \S+ has not been heard of since 20\S+Z: its host .* is silent, and no launcher is active to start it anew\.$/,
        ),
        advice: like(/^start one: `millrace launcher`/),
        facts: { absent_since: like(/^20\S+Z$/) },
      });
      expect((await ask('GET /api/tenants')).json).toMatchObject({
        items: expect.arrayContaining([expect.objectContaining({ name, reason_code: 'silent' })]) as unknown,
      });
    });
  });

  it('a tenant whose host has ended shows the last report of its scheduler', async () => {
    await word('running', null);
    await life.control.exec(sql`update host set beat_at = '-infinity' where id = ${hostId}`);
    expect(await shown()).toMatchObject({ reason: like(/^not heard of since 20\S+Z: its host \(.*\) is silent$/) });
    await life.control.exec(sql`delete from host where id = ${hostId}`);
    expect(await shown()).toMatchObject({ reason: like(/^not heard of since 20\S+Z: its host has left$/), host: null });
    await life.control.exec(sql`delete from scheduler where tenant_id = ${id}`);
    expect(await shown()).toMatchObject({ reason: 'not heard of: its host has left', reason_code: 'silent' });
  });

  it('a tenant whose scheduler has ended on a live host shows the report of the host', async () => {
    await word('ended', 'the connection that held its lock was lost');
    await withoutLauncher(life, async () => {
      const ended = /^ended at 20\S+Z: the connection that held its lock was lost; no launcher is active$/;
      expect(await shown()).toMatchObject({ state: 'STARTED', reason_code: 'unreachable', reason: like(ended) });
      expect(await why()).toMatchObject({
        reason_code: 'unreachable',
        sentence: like(
          / has ended at 20\S+Z: the connection .* was lost, and no launcher is active to start it anew\.$/,
        ),
      });
    });
  });

  it('a report on an older order is ignored', async () => {
    await word('ended', 'its host was told to end it', -1);
    expect(await shown()).toMatchObject({ state: 'STARTED', reason: null });
  });

  it('isStarted follows the same rule', async () => {
    await word('running', null);
    const heard = sql`update scheduler set beat_at = clock_timestamp() where tenant_id = ${id}`;
    await life.control.exec(heard);
    expect(await isStarted(life.control, name)).toBe(true);
    await silentFor(9);
    expect(await isStarted(life.control, name)).toBe(false);
    await silentFor(0);
    await life.control.exec(sql`
      update scheduler set beat_at = clock_timestamp() - interval '11 seconds' where tenant_id = ${id}`);
    expect(await isStarted(life.control, name)).toBe(false);
  });
});

describe('no active launcher', () => {
  const send = (kind: 'stop' | 'restart') =>
    sendMessage(life.control, { kind, tenant: { id, name }, sender: 'key:ann', cause: 'by hand', at: new Date() });

  it('the explanation names the waiting messages and their senders', async () => {
    await withoutLauncher(life, async () => {
      await send('restart');
      await life.control.exec(sql`update tenant set desired = 'off' where id = ${id}`);
      await send('stop');
      expect(await why()).toMatchObject({
        sentence: like(/, process 4711; a stop by key:ann at 20\S+Z waits for a launcher, and so does 1 before it\.$/),
      });
      await silentFor(9);
      expect(await why()).toMatchObject({
        sentence: like(/ is silent, and no launcher is active; a stop by key:ann at 20\S+Z waits for a launcher, /),
      });
    });
  });

  it('a tenant that the last launcher has released shows once that no launcher is active', async () => {
    const sentence = formatReason(reasons.noLauncher);
    await life.control.exec(sql`
      update launch set state = 'ENABLED', ordered = false, code = 'starting', reason = ${sentence},
             why = ${storeReason(reasons.noLauncher, sentence)}::jsonb
       where tenant_id = ${id}`);
    expect(await shown()).toMatchObject({ state: 'ENABLED', reason: 'starting' });
    await withoutLauncher(life, async () => {
      expect(await shown()).toMatchObject({ state: 'ENABLED', reason: 'no launcher is active' });
      expect(await why()).toMatchObject({
        sentence: `No launcher is active, so nothing changes: ${name} is to be started.`,
      });
    });
  });
});
