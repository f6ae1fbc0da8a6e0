import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ControlDatabase, makeControlDatabase } from '../../../test/harness/fresh-database.ts';
import { HandTime } from '../../../test/harness/hand-time.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { newSecret } from '../../kernel/text/secret-text.ts';
import { Callers, hashOf, sessionMs } from './callers.ts';
import { insertKey, revokeKey } from '../installation/queries.ts';
import { makeSecrets } from './secrets.ts';
import { insertSession } from './session-queries.ts';

let control: ControlDatabase;
let time: HandTime;
let callers: Callers;
let lookups = 0;
const tenantId = newId();
const keyId = newId();
const secret = newSecret('mrk_');
const secrets = makeSecrets(['a master key of the tests'], () => time.now());
beforeAll(async () => {
  control = await makeControlDatabase();
  await control.db.exec(
    sql`insert into tenant (id, name, database, created_at) values (${tenantId}, 'acme', 'x', now())`,
  );
});
afterAll(() => control.close());
beforeEach(async () => {
  time = new HandTime('2026-06-01T00:00:00Z');
  lookups = 0;
  const counted: Db = {
    ...control.db,
    maybeOne: (query) => {
      lookups++;
      return control.db.maybeOne(query);
    },
  };
  callers = new Callers({ control: counted, secrets, time, cookieName: 'millrace_x' });
  await control.db.exec(sql`delete from key`);
  await insertKey(control.db, {
    id: keyId,
    name: 'ci',
    role: 'operator',
    tenantId,
    hash: hashOf(secret),
    at: new Date(),
    by: 'test',
  });
});

const request = (headers: Record<string, string>) => new Request('http://x/', { headers });
const identify = (authorization: string) => callers.identify(request({ authorization }));
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
const unknown: unknown = expect.objectContaining({ code: 'unauthenticated' });

describe('keys', () => {
  it('a key is accepted as Bearer and as the user name of Basic, whatever the case of the scheme', async () => {
    const identity = { id: keyId, name: 'ci' };
    const caller = { kind: 'key', role: 'operator', keyId, identity, tenantId, tenant: 'acme', actor: 'key:ci' };
    expect(await identify(`Bearer ${secret}`)).toEqual(caller);
    expect(await identify(`bearer   ${secret}`)).toEqual(caller);
    expect(await identify(basic(`${secret}:`))).toEqual(caller);
    expect(await identify(basic(`${secret}:anything`))).toEqual(caller);
    expect(await identify(basic(secret))).toEqual(caller);
  });

  it('an invalid key is rejected, not ignored', async () => {
    for (const header of [
      `Bearer ${secret}x`,
      'Bearer',
      'Bearer ',
      `Digest ${secret}`,
      secret,
      basic(''),
      basic(':pass'),
      'Basic %%%',
    ])
      await expect(identify(header), header).rejects.toEqual(unknown);
  });

  it('a key that is empty or too short is rejected, even if its hash is in the table', async () => {
    for (const [index, short] of ['', ' ', 'x', 'fifteen letters'].entries()) {
      const key = { id: newId(), name: `short ${index}`, role: 'root' as const, tenantId: null, by: 'installation' };
      await insertKey(control.db, { ...key, hash: hashOf(short), at: new Date() });
      await expect(identify(`Bearer ${short}`)).rejects.toEqual(unknown);
      await expect(identify(basic(`${short}:`))).rejects.toEqual(unknown);
      expect(await callers.byKey(short)).toBeUndefined();
    }
    expect(lookups).toBe(0);
  });

  it('the table of keys holds hashes, never a secret (I12)', async () => {
    const rows = await control.db.rows(sql`select * from key`);
    expect(JSON.stringify(rows)).not.toContain(secret.slice(4));
  });

  it('a key is cached for at most 5 s', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      await identify(`Bearer ${secret}`);
      await control.db.exec(sql`delete from key`);
      vi.advanceTimersByTime(4_999);
      expect(await identify(`Bearer ${secret}`)).toMatchObject({ role: 'operator' });
      expect(lookups).toBe(1);
      vi.advanceTimersByTime(2);
      await expect(identify(`Bearer ${secret}`)).rejects.toEqual(unknown);
      expect(lookups).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });

  it('a revoked key is rejected as soon as the revocation arrives', async () => {
    await identify(`Bearer ${secret}`);
    await revokeKey(control.db, keyId, new Date());
    callers.forget();
    await expect(identify(`Bearer ${secret}`)).rejects.toEqual(unknown);
  });

  it('a key is not cached if its revocation arrives during the lookup', async () => {
    const looking = identify(`Bearer ${secret}`);
    callers.forget();
    await looking;
    await revokeKey(control.db, keyId, new Date());
    await expect(identify(`Bearer ${secret}`)).rejects.toEqual(unknown);
  });

  it('the cache stays bounded when thousands of wrong keys are tried', async () => {
    const none: Db = { ...control.db, maybeOne: async () => undefined };
    const guarded = new Callers({ control: none, secrets, time, cookieName: 'x' });
    for (let i = 0; i < 20_005; i++) expect(await guarded.byKey(`a wrong key, number ${i}`)).toBeUndefined();
  });
});

describe('tasks', () => {
  it('a task is identified by the credential of its run', async () => {
    const run = { run: newId(), lease: 3 };
    const credential = secrets.signRun({ tenant: tenantId, ...run });
    expect(await identify(`Bearer ${credential}`)).toEqual({ kind: 'task', tenantId, ...run });
    expect(lookups).toBe(0);
  });
});

describe('sessions', () => {
  const cookie = newSecret('mrs_');
  const visit = (value = cookie) => callers.identify(request({ cookie: `other=1; millrace_x=${value}; more=2` }));
  beforeEach(async () => {
    await control.db.exec(sql`delete from session`);
    const at = new Date(time.now());
    const until = new Date(time.now() + sessionMs);
    await insertSession(control.db, {
      id: newId(),
      hash: hashOf(cookie),
      keyId,
      openedWith: 'key',
      role: 'operator',
      actor: 'key:ci',
      at,
      until,
    });
  });

  it('a session is identified by its cookie, and ends twelve hours after its last use', async () => {
    expect(await visit()).toEqual({ kind: 'session', role: 'operator', tenantId, tenant: 'acme', actor: 'key:ci' });
    time.advance(sessionMs - 1_000);
    expect(await visit()).toBeDefined();
    time.advance(sessionMs - 1_000);
    expect(await visit()).toBeDefined();
    time.advance(sessionMs);
    expect(await visit()).toBeUndefined();
  });

  it('an unknown session is ignored, so that a page can offer to sign in', async () => {
    expect(await visit('nonsense')).toBeUndefined();
    expect(await callers.identify(request({}))).toBeUndefined();
    expect(await callers.identify(request({ cookie: 'millrace_xy=1' }))).toBeUndefined();
  });

  it('a session ends with its key', async () => {
    await revokeKey(control.db, keyId, new Date());
    expect(await visit()).toBeUndefined();
  });
});
