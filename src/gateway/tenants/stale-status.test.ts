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

/** Its host was last heard of so long ago. */
async function silentFor(seconds: number): Promise<void> {
  await life.control.exec(sql`
    update host set beat_at = clock_timestamp() - ${seconds} * interval '1 second' where id = ${hostId}`);
}

/** Its host's word on the order that holds, or on an older one. */
async function word(phase: string, reason: string | null, orderNo = 0): Promise<void> {
  const code = phase === 'ended' ? 'unreachable' : null;
  await life.control.exec(sql`
    insert into scheduler (tenant_id, id, host_id, order_no, phase, code, reason, engine, changed_at, beat_at)
    values (${id}, ${newId()}, ${hostId}, ${orderNo}, ${phase}, ${code}, ${reason}, ${engineVersion},
            clock_timestamp(), clock_timestamp() - interval '1 hour')`);
}

describe('a tenant that the launcher has left as STARTED', () => {
  it('is said to run while its host is heard of, with the remark that no launcher is active', async () => {
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

  it('is not said to run once its host is silent for as long as a launcher lets pass', async () => {
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

  it('is known by the last word of its scheduler where its host has left, or is known to have ended', async () => {
    await word('running', null);
    await life.control.exec(sql`update host set beat_at = '-infinity' where id = ${hostId}`);
    expect(await shown()).toMatchObject({ reason: like(/^not heard of since 20\S+Z: its host \(.*\) is silent$/) });
    await life.control.exec(sql`delete from host where id = ${hostId}`);
    expect(await shown()).toMatchObject({ reason: like(/^not heard of since 20\S+Z: its host has left$/), host: null });
    await life.control.exec(sql`delete from scheduler where tenant_id = ${id}`);
    expect(await shown()).toMatchObject({ reason: 'not heard of: its host has left', reason_code: 'silent' });
  });

  it('is told of by its host, which is alive, where only its scheduler has ended', async () => {
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

  it('is not judged by what was said of an older order', async () => {
    await word('ended', 'its host was told to end it', -1);
    expect(await shown()).toMatchObject({ state: 'STARTED', reason: null });
  });

  it('is healthy by the same rule', async () => {
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

describe('while no launcher is active', () => {
  const send = (kind: 'stop' | 'restart') =>
    sendMessage(life.control, { kind, tenant: { id, name }, sender: 'key:ann', cause: 'by hand', at: new Date() });

  it('what waits for one is told, with whose it is', async () => {
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

  it('that is said once of a tenant that the last launcher has let go of', async () => {
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
