/**
 * Identifies callers: by key (Bearer, or the user name of Basic), by session (a cookie), or by the credential of a running
 * task. Only hashes are looked up (I12). A key is cached for at most 5 s, and a revocation is broadcast.
 */
import { createHash } from 'node:crypto';
import type { Caller, KeyCaller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';
import { minSecretLength } from '../../kernel/text/secret-text.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import { findKey, type KeyRow } from '../installation/queries.ts';
import type { RunSecrets } from './secrets.ts';
import { touchSession } from './session-queries.ts';

const cacheMs = 5_000;
const maxCachedKeys = 10_000;
export const sessionMs = 12 * 3_600_000;

/** For our own secrets. A secret that a client presents goes through `hashPresented`. */
export function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Hashes a presented secret for the lookup. Undefined if it is shorter than any valid secret: an empty one never authenticates. */
export function hashPresented(secret: string): Buffer | undefined {
  return secret.length < minSecretLength ? undefined : hashOf(secret);
}

export class Callers {
  readonly #control: Db;
  readonly #secrets: RunSecrets;
  readonly #time: Time;
  readonly #cookieName: string;
  #generation = 0;
  #remembered = new Map<string, { readonly key: KeyRow | undefined; readonly until: number }>();

  constructor(options: { control: Db; secrets: RunSecrets; time: Time; cookieName: string }) {
    this.#control = options.control;
    this.#secrets = options.secrets;
    this.#time = options.time;
    this.#cookieName = options.cookieName;
  }

  /** Grows with each `forget`. What was derived from a caller of an earlier generation must be derived again. */
  get generation(): number {
    return this.#generation;
  }

  /** Clears the cache. Call it when a key was revoked in any process. */
  forget(): void {
    this.#remembered = new Map();
    this.#generation += 1;
  }

  /** `undefined`: the request has no credential. An invalid credential is rejected, not ignored. */
  async identify(request: Request): Promise<Caller | undefined> {
    const header = request.headers.get('authorization');
    if (header !== null) return this.byAuthorization(header);
    const cookie = cookieOf(request, this.#cookieName);
    return cookie === undefined ? undefined : this.#bySession(cookie);
  }

  /** The hash of the caller's key or session. A task has neither: its credential ends with its lease. */
  hashFor(request: Request, caller: Caller | undefined): Buffer | undefined {
    if (caller === undefined || caller.kind === 'task') return undefined;
    const header = request.headers.get('authorization');
    const secret = header === null ? cookieOf(request, this.#cookieName) : secretOf(header);
    return secret === undefined ? undefined : hashPresented(secret);
  }

  async byAuthorization(header: string): Promise<Caller> {
    const secret = secretOf(header);
    if (secret === undefined)
      throw new MillraceError('unauthenticated', 'send the key as Bearer, or as the user name of Basic');
    const task = this.#secrets.verifyRun(secret);
    if (task !== undefined) return task;
    const key = await this.byKey(secret);
    if (key === undefined) throw new MillraceError('unauthenticated', 'this key is not known, or was revoked');
    return callerOf(key);
  }

  async byKey(secret: string): Promise<KeyRow | undefined> {
    const hash = hashPresented(secret);
    if (hash === undefined) return undefined;
    const name = hash.toString('base64');
    // if a revocation arrives during the read, the result goes into the map that it discarded
    const remembered = this.#remembered;
    const known = remembered.get(name);
    if (known !== undefined && known.until > performance.now()) return known.key;
    const key = await findKey(this.#control, hash, new Date(this.#time.now()));
    if (remembered.size >= maxCachedKeys) remembered.clear();
    remembered.set(name, { key, until: performance.now() + cacheMs });
    return key;
  }

  async #bySession(cookie: string): Promise<Caller | undefined> {
    const hash = hashPresented(cookie);
    if (hash === undefined) return undefined;
    const nowMs = this.#time.now();
    const row = await touchSession(this.#control, hash, new Date(nowMs), new Date(nowMs + sessionMs));
    return row && { kind: 'session', ...row };
  }
}

export function callerOf(key: KeyRow): KeyCaller {
  const { id: keyId, identity, role, tenantId, tenant, name } = key;
  return { kind: 'key', role, keyId, identity: { id: identity, name }, tenantId, tenant, actor: `key:${name}` };
}

/** Throws if the caller belongs to another tenant. Compares ids, because a name may belong to another tenant by now. */
export function rejectOtherTenant(
  caller: Caller | undefined,
  tenant: { readonly id: string | undefined; readonly name: string },
): void {
  if (caller === undefined || caller.tenantId === null || caller.tenantId === tenant.id) return;
  const own = caller.kind === 'task' || caller.tenant === tenant.name ? null : caller.tenant;
  const what = caller.kind === 'task' ? 'credential' : 'key';
  const whose = own === null ? `for another tenant than ${tenant.name}` : `for tenant ${own}, not ${tenant.name}`;
  throw new MillraceError('forbidden', `this ${what} is ${whose}`);
}

function secretOf(header: string): string | undefined {
  const [scheme = '', value = ''] = header.split(/\s+/, 2);
  if (value === '') return undefined;
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return undefined;
  return Buffer.from(value, 'base64').toString().split(':', 1)[0];
}

export function cookieOf(request: Request, name: string): string | undefined {
  const cookies = request.headers.get('cookie')?.split(';') ?? [];
  const found = cookies.map((cookie) => cookie.trim().split('=')).find(([key]) => key === name);
  return found?.[1];
}
