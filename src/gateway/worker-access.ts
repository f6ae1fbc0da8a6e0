/**
 * What a worker's key lets it say under `/internal`, where every request names a worker:
 *
 * 1. A worker's id belongs to the key that it was first used with, for as long as that key is not revoked. So a stolen key
 *    cannot speak for the workers of another key, nor read what their runs name.
 * 2. A key that is bound to a tenant says and hears nothing of other tenants.
 * 3. An incarnation is a start time. One far ahead of our clock would make every later life of that worker an earlier one.
 *
 * Which key an id belongs to is remembered: a claim costs no statement in the control database.
 */
import type { Caller, KeyCaller } from '../contract/roles.ts';
import type { Invalidation } from '../contract/wire.ts';
import { MillraceError } from '../errors.ts';
import type { Db } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { findWorkerKey, inProcessKey } from './control-queries.ts';

/** How far the clock of a worker may be ahead of ours. */
const mostAheadMs = 86_400_000;
const mostRemembered = 10_000;

interface Identity {
  readonly worker?: string | undefined;
  readonly incarnation?: number | undefined;
}

export interface Admitted {
  readonly worker: string;
  readonly keyId: string;
  /** The only tenant that this worker has to do with; null: all. */
  readonly tenantId: string | null;
}

export class WorkerAccess {
  readonly #control: Db;
  readonly #time: Time;
  /** Key by worker. */
  readonly #known = new Map<string, string>();

  constructor(control: Db, time: Time) {
    this.#control = control;
    this.#time = time;
  }

  /** Refuses a request that is not this caller's to make. `tenants` are those that it names. */
  async admit(caller: Caller | undefined, identity: Identity, tenants: Iterable<string> = []): Promise<Admitted> {
    const { keyId, tenantId, tenant } = keyOf(caller);
    const { worker, incarnation = 0 } = identity;
    if (worker === undefined)
      throw new MillraceError('forbidden', 'this worker does not say who it is: it is of an older release, upgrade it');
    if (incarnation > this.#time.now() + mostAheadMs)
      throw refused(`the incarnation ${incarnation} is more than a day ahead of the server's clock`);
    for (const each of tenantId === null ? [] : tenants) {
      if (each !== tenantId) throw new MillraceError('forbidden', `this key is of tenant ${tenant}, and of no other`);
    }
    if (this.#known.get(worker) !== keyId) await this.#check(worker, keyId);
    return { worker, keyId, tenantId };
  }

  async #check(worker: string, keyId: string): Promise<void> {
    const owner = await findWorkerKey(this.#control, worker);
    if (owner === undefined) return;
    if (owner !== keyId) throw refused(`the worker id ${worker} belongs to another key`);
    if (this.#known.size >= mostRemembered) this.#known.clear();
    this.#known.set(worker, keyId);
  }
}

function keyOf(caller: Caller | undefined): { keyId: string; tenantId: string | null; tenant: string | null } {
  if (caller?.kind === 'key' && caller.keyId !== undefined)
    return { keyId: caller.keyId, tenantId: caller.tenantId, tenant: caller.tenant };
  throw new MillraceError('forbidden', 'workers call with a key, not with a session');
}

/** A worker that hears this takes a new id. */
export function refused(why: string): MillraceError {
  return new MillraceError('worker_refused', why);
}

/** As whom the worker within `up` calls. */
export const inProcessCaller: KeyCaller = {
  kind: 'key',
  role: 'worker',
  keyId: inProcessKey,
  tenantId: null,
  tenant: null,
  actor: 'worker of up',
};

/** Changes in other tenants are counted, as the worker expects, but not told. */
export function withoutOthers(changes: readonly Invalidation[], tenantId: string | null): Invalidation[] {
  return changes.map((change) =>
    tenantId === null || change.tenant === tenantId ? change : { tenant: inProcessKey, kind: 'task', id: inProcessKey },
  );
}
