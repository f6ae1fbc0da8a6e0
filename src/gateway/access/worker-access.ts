/**
 * The rights of a worker's key under `/internal`, where every request names a worker:
 *
 * 1. A worker's id belongs to the key that first used it, until that key is revoked. The database decides which of two
 *    keys was first. A stolen key cannot act as a worker of another key, nor read what the runs of that worker name.
 * 2. A key that is bound to a tenant neither sends nor receives anything of other tenants.
 * 3. An incarnation is a start time. One far ahead of our clock would make every later life of that worker an earlier one.
 *
 * A report, a log chunk, a renewal or a stash value is further bound to the worker that holds the run: the tenant's
 * database checks that. The owner of an id is cached, so that a claim costs no statement in the control database.
 */
import type { Caller, KeyCaller } from '../../contract/roles.ts';
import { type Invalidation, maxIncarnationAheadMs } from '../../contract/wire.ts';
import { MillraceError } from '../../errors.ts';
import { nilId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Time } from '../../kernel/time.ts';
import { claimWorkerId, inProcessKey } from '../installation/queries.ts';

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
    if (incarnation > this.#time.now() + maxIncarnationAheadMs)
      throw refused(`the incarnation ${incarnation} is more than a day ahead of the server's clock`);
    for (const each of tenantId === null ? [] : tenants) {
      if (each !== tenantId) throw new MillraceError('forbidden', `this key is of tenant ${tenant}, and of no other`);
    }
    if (this.#known.get(worker) !== keyId) await this.#check(worker, keyId);
    return { worker, keyId, tenantId };
  }

  async #check(worker: string, keyId: string): Promise<void> {
    if (!(await claimWorkerId(this.#control, worker, keyId, new Date(this.#time.now()))))
      throw refused(`the worker id ${worker} belongs to another key`);
    if (this.#known.size >= mostRemembered) this.#known.clear();
    this.#known.set(worker, keyId);
  }
}

export function keyOf(caller: Caller | undefined): { keyId: string; tenantId: string | null; tenant: string | null } {
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

/** Stands for a change in a tenant that the worker must not hear of. The worker counts changes, so it cannot be left out. */
const hiddenChange: Invalidation = { tenant: nilId, kind: 'task', id: nilId };

export function withoutOthers(changes: readonly Invalidation[], tenantId: string | null): Invalidation[] {
  return changes.map((change) => (tenantId === null || change.tenant === tenantId ? change : hiddenChange));
}
