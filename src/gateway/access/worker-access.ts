/**
 * Checks the rights of a worker's key under `/internal`, where every request names a worker:
 *
 * 1. A worker's id belongs to the key that first used it, until that key is revoked. The database decides which of two
 *    keys was first. A stolen key cannot act as a worker of another key, nor read the secrets that its runs name.
 * 2. A key that is bound to a tenant neither sends nor receives anything of other tenants.
 * 3. An incarnation is a start time. One far ahead of our clock is rejected: every later incarnation would count as older.
 *
 * Reports, log chunks, renewals and stash values are also bound to the worker that holds the run; the tenant's database
 * checks that. Owners of ids are cached, so that a claim needs no statement in the control database.
 */
import type { Caller, KeyCaller } from '../../contract/roles.ts';
import { type Invalidation, maxIncarnationAheadMs } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';
import { nilId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import { claimWorkerId, inProcessKey } from '../installation/queries.ts';

const maxCachedOwners = 10_000;

interface Identity {
  readonly worker?: string | undefined;
  readonly incarnation?: number | undefined;
}

export interface Admitted {
  readonly worker: string;
  readonly keyId: string;
  /** The only tenant that this worker may serve; null: all. */
  readonly tenantId: string | null;
}

export class WorkerAccess {
  readonly #control: Db;
  readonly #time: Time;
  /** The key of each worker. */
  readonly #known = new Map<string, string>();

  constructor(control: Db, time: Time) {
    this.#control = control;
    this.#time = time;
  }

  /** Throws if the caller has no right to make this request. `tenants` are the tenants that the request names. */
  async admit(caller: Caller | undefined, identity: Identity, tenants: Iterable<string> = []): Promise<Admitted> {
    const { keyId, tenantId, tenant } = keyOf(caller);
    const { worker, incarnation = 0 } = identity;
    if (worker === undefined)
      throw new MillraceError(
        'forbidden',
        'the request does not name its worker, so the worker is of an older release: upgrade it',
      );
    if (incarnation > this.#time.now() + maxIncarnationAheadMs)
      throw makeRefusal(`the incarnation ${incarnation} is more than a day ahead of the server's clock`);
    for (const each of tenantId === null ? [] : tenants) {
      if (each !== tenantId) throw new MillraceError('forbidden', `this key belongs to tenant ${tenant} only`);
    }
    if (this.#known.get(worker) !== keyId) await this.#check(worker, keyId);
    return { worker, keyId, tenantId };
  }

  async #check(worker: string, keyId: string): Promise<void> {
    if (!(await claimWorkerId(this.#control, worker, keyId, new Date(this.#time.now()))))
      throw makeRefusal(`the worker id ${worker} belongs to another key`);
    if (this.#known.size >= maxCachedOwners) this.#known.clear();
    this.#known.set(worker, keyId);
  }
}

export function keyOf(caller: Caller | undefined): { keyId: string; tenantId: string | null; tenant: string | null } {
  if (caller?.kind === 'key' && caller.keyId !== undefined)
    return { keyId: caller.keyId, tenantId: caller.tenantId, tenant: caller.tenant };
  throw new MillraceError('forbidden', 'workers call with a key, not with a session');
}

/** A worker that receives this error takes a new id. */
export function makeRefusal(why: string): MillraceError {
  return new MillraceError('worker_refused', why);
}

/** The caller of the worker within `up`. */
export const inProcessCaller: KeyCaller = {
  kind: 'key',
  role: 'worker',
  keyId: inProcessKey,
  tenantId: null,
  tenant: null,
  actor: 'worker of up',
};

/** Replaces a change of a tenant that the worker must not know. The worker counts changes, so none can be left out. */
const hiddenChange: Invalidation = { tenant: nilId, kind: 'task', id: nilId };

export function hideOtherTenants(changes: readonly Invalidation[], tenantId: string | null): Invalidation[] {
  return changes.map((change) => (tenantId === null || change.tenant === tenantId ? change : hiddenChange));
}
