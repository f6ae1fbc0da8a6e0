/** Statements of the gateway in the control database: keys, workers, gateways. Those about sessions are in session-queries.ts. */
import type { Role } from '../../contract/roles.ts';
import type { HeartbeatRequest } from '../../contract/wire.ts';
import { nilId } from '../../kernel/id.ts';
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { SchedulerRow } from './scheduler-metrics.ts';

/** The key id of the worker within `up`, which has no key. */
export const inProcessKey = nilId;

export type KeyRow = {
  id: string;
  /** The owner of topics and subscriptions; the same for all secrets of a rotated key. */
  identity: string;
  name: string;
  role: Role;
  tenantId: string | null;
  tenant: string | null;
};

export function findKey(db: Db, hash: Buffer, at: Date): Promise<KeyRow | undefined> {
  return db.maybeOne<KeyRow>(sql`
    select key.id, coalesce(key.identity, key.id) as identity, key.name, key.role, key.tenant_id as "tenantId", tenant.name as tenant
      from key
      left join tenant on tenant.id = key.tenant_id
     where key.hash = ${hash} and key.revoked_at is null and (key.expires_at is null or key.expires_at > ${at})`);
}

export function insertKey(
  db: Db,
  key: { id: string; name: string; role: Role; tenantId: string | null; hash: Buffer; at: Date; by: string },
): Promise<number> {
  return db.exec(sql`
    insert into key (id, name, role, tenant_id, hash, created_at, created_by)
    values (${key.id}, ${key.name}, ${key.role}, ${key.tenantId}, ${key.hash}, ${key.at}, ${key.by})
    on conflict (hash) do nothing`);
}

/** Gives a key another secret under the same identity. The former secret is accepted until `expiresAt`. */
export async function rotateKey(
  db: Db,
  id: string,
  next: { id: string; hash: Buffer; at: Date; by: string; expiresAt: Date },
): Promise<{ name: string; role: Role; tenant: string | null } | undefined> {
  return db.maybeOne(sql`
    with former as (
      update key set expires_at = least(coalesce(expires_at, ${next.expiresAt}), ${next.expiresAt})
       where id = ${id} and revoked_at is null and (expires_at is null or expires_at > ${next.at})
         and created_by <> ${installationActor} and role <> 'worker'
      returning id, identity, name, role, tenant_id
    ), rotated as (
      insert into key (id, identity, name, role, tenant_id, hash, created_at, created_by)
      select ${next.id}, coalesce(identity, id), name, role, tenant_id, ${next.hash}, ${next.at}, ${next.by} from former
    )
    select former.name, former.role, tenant.name as tenant
      from former left join tenant on tenant.id = former.tenant_id`);
}

type ClientToken = { readonly id: string; readonly name: string; readonly hash: Buffer; readonly tenantId: string };

/**
 * Creates a client key with a secret that the caller may have chosen. A client key of the same tenant with that secret gets the
 * name, and is valid again if it was revoked. Returns false if the secret belongs to any other key.
 */
export async function putClientToken(db: Db, key: ClientToken & { at: Date; by: string }): Promise<boolean> {
  const written = await db.exec(sql`
    insert into key as k (id, name, role, tenant_id, hash, created_at, created_by)
    values (${key.id}, ${key.name}, 'client', ${key.tenantId}, ${key.hash}, ${key.at}, ${key.by})
    on conflict (hash) do update set name = excluded.name, revoked_at = null, expires_at = null
     where k.role = 'client' and k.tenant_id = excluded.tenant_id`);
  return written === 1;
}

export function listClientKeys(db: Db, tenantId: string, at: Date): Promise<{ id: string; name: string }[]> {
  return db.rows(sql`
    select id, name from key
     where tenant_id = ${tenantId} and role = 'client' and revoked_at is null
       and (expires_at is null or expires_at > ${at})
     order by id
     limit 10000`);
}

/** A valid client key of a tenant, by its id or the hash of its secret. */
export function findClientKey(
  db: Db,
  tenantId: string,
  { id, hash }: { id: string | null; hash: Buffer | null },
): Promise<KeyRow | undefined> {
  return db.maybeOne<KeyRow>(sql`
    select key.id, coalesce(key.identity, key.id) as identity, key.name, key.role, key.tenant_id as "tenantId", tenant.name as tenant
      from key
      join tenant on tenant.id = key.tenant_id
     where key.tenant_id = ${tenantId} and key.role = 'client' and key.revoked_at is null
       and (key.id = ${id}::uuid or key.hash = ${hash}::bytea)`);
}

/** Whether a rotated key has another secret that is valid. Locks all its secrets, so that no two are revoked at the same moment. */
export async function hasOtherSecret(tx: Db, { id, identity }: KeyRow, at: Date): Promise<boolean> {
  const rows = await tx.rows<{ id: string; valid: boolean }>(sql`
    select id, revoked_at is null and (expires_at is null or expires_at > ${at}) as valid
      from key
     where coalesce(identity, id) = ${identity}
     order by id
       for update`);
  return rows.some((row) => row.id !== id && row.valid);
}

export interface PageById {
  /** The id of the last item of the previous page. */
  readonly after: string | undefined;
  readonly limit: number;
}

/** Valid keys, the oldest first, because ids grow with time. */
export function listKeys(
  db: Db,
  { after, limit, at }: PageById & { readonly at: Date },
): Promise<(Omit<KeyRow, 'tenantId'> & { created_at: Date; created_by: string; expires_at: Date | null })[]> {
  const further = after === undefined ? sql`true` : sql`key.id > ${after}`;
  return db.rows(sql`
    select key.id, coalesce(key.identity, key.id) as identity, key.name, key.role, tenant.name as tenant, key.created_at,
           key.created_by, key.expires_at
      from key
      left join tenant on tenant.id = key.tenant_id
     where key.revoked_at is null and (key.expires_at is null or key.expires_at > ${at}) and ${further}
     order by key.id
     limit ${limit}`);
}

/** The actor of the installation's own root key. It cannot be revoked here: the next start would revive it from its source. */
export const installationActor = 'installation';

/** Revokes a key. Its sessions and links end with it. */
export async function revokeKey(db: Db, id: string, at: Date): Promise<{ name: string; role: Role } | undefined> {
  const row = await db.maybeOne<{ name: string; role: Role }>(sql`
    update key set revoked_at = ${at}
     where id = ${id} and revoked_at is null and created_by <> ${installationActor}
    returning name, role`);
  if (row === undefined) return undefined;
  await db.exec(sql`delete from session where key_id = ${id}`);
  await db.exec(sql`delete from sign_in_link where key_id = ${id}`);
  return row;
}

export function isInstallationKey(db: Db, id: string): Promise<boolean> {
  return db
    .maybeOne(sql`select id from key where id = ${id} and revoked_at is null and created_by = ${installationActor}`)
    .then((row) => row !== undefined);
}

export function isWorkerKey(db: Db, id: string): Promise<boolean> {
  return db
    .maybeOne(sql`select id from key where id = ${id} and revoked_at is null and role = 'worker'`)
    .then((row) => row !== undefined);
}

/** Revokes former root keys of the installation. Returns their number. */
export function retireInstallationKeys(db: Db, exceptHash: Buffer, at: Date): Promise<number> {
  return db.exec(sql`
    update key set revoked_at = ${at}
     where created_by = ${installationActor} and hash <> ${exceptHash} and revoked_at is null`);
}

export function reviveKey(db: Db, hash: Buffer): Promise<number> {
  return db.exec(sql`update key set revoked_at = null where hash = ${hash} and revoked_at is not null`);
}

/** Whether this key may use the id of the row `w` of workers: it used the id before, or no valid key did. */
function mayUse(keyId: string): Sql {
  return sql`(
    w.key_id is null or w.key_id = ${keyId}
    or not (w.key_id = ${inProcessKey} or exists (select from key where id = w.key_id and revoked_at is null)))`;
}

/**
 * Records the key that a worker's id belongs to. Returns whether it is this key. If two keys use a new id at the same time, the
 * first to commit gets it.
 */
export async function claimWorkerId(db: Db, worker: string, keyId: string, at: Date): Promise<boolean> {
  const claimed = await db.exec(sql`
    insert into worker as w (
      id, key_id, incarnation, name, addr, version, places, running, runtimes, queues, first_seen_at, beat_at)
    values (${worker}, ${keyId}, 0, ${worker}, '', '', 0, 0, '{}', '{}', ${at}, ${at})
    on conflict (id) do update set key_id = excluded.key_id
     where ${mayUse(keyId)}`);
  return claimed === 1;
}

/**
 * Records a heartbeat. An older incarnation of the worker does not overwrite a newer one, nor does a worker of another key: then
 * it returns undefined. Otherwise it returns the tenants of the worker's last heartbeat, or of its earlier incarnation, and those
 * that have handed it runs since.
 */
export async function noteWorker(
  db: Db,
  beat: HeartbeatRequest,
  { tenants, keyId, at }: { tenants: readonly string[]; keyId: string; at: Date },
): Promise<string[] | undefined> {
  const row = await db.one<{ tenants: string[]; isNoted: boolean }>(sql`
    with before as (
      select tenants from worker where id = ${beat.worker}
    ),
    noted as (
      insert into worker as w (
        id, key_id, incarnation, name, addr, version, places, running, runtimes, unavailable, queues, tenants, first_seen_at,
        beat_at)
      values (${beat.worker}, ${keyId}, ${beat.incarnation}, ${beat.name}, ${beat.addr}, ${beat.version}, ${beat.places},
              ${beat.taken ?? beat.holds.length}, ${beat.runtimes}, ${JSON.stringify(beat.unavailable ?? {})}::jsonb,
              ${beat.queues}, ${tenants}, ${at}, ${at})
      on conflict (id) do update set
        key_id = excluded.key_id, incarnation = excluded.incarnation, name = excluded.name, addr = excluded.addr,
        version = excluded.version, places = excluded.places, running = excluded.running, runtimes = excluded.runtimes,
        unavailable = excluded.unavailable, queues = excluded.queues,
        tenants = excluded.tenants, beat_at = excluded.beat_at
       where w.incarnation <= excluded.incarnation
         and ${mayUse(keyId)}
      returning id
    )
    select coalesce((select tenants from before), '{}') as tenants, exists (select from noted) as "isNoted"`);
  return row.isNoted ? row.tenants : undefined;
}

/** Adds tenants to those that receive the next heartbeats of these workers. */
export async function noteServings(
  db: Db,
  servings: readonly { readonly worker: string; readonly tenant: string }[],
): Promise<void> {
  await db.exec(sql`
    with served as (
      select s.worker, array_agg(distinct s.tenant) as tenants
        from unnest(${servings.map((s) => s.worker)}::uuid[], ${servings.map((s) => s.tenant)}::uuid[]) as s (worker, tenant)
       group by s.worker
    )
    update worker w
       set tenants = array(select unnest(w.tenants) union select unnest(served.tenants))
      from served
     where w.id = served.worker and not w.tenants @> served.tenants`);
}

/**
 * The tenants that a claim may concern, without a query to any of them: tenants that are switched off; tenants whose schedulers
 * reported ready runs (the last report of a silent one counts); and tenants with silent schedulers, except those that cannot be
 * claimed from.
 */
export async function readCandidates(db: Db): Promise<{ off: string[]; ready: string[]; silent: string[] }> {
  const rows = await db.rows<{ id: string; why: 'off' | 'ready' | 'silent' }>(sql`
    select tenant.id, case when tenant.desired = 'off' then 'off' when scheduler.ready then 'ready' else 'silent' end as why
      from tenant
      left join scheduler on scheduler.tenant_id = tenant.id
      left join launch on launch.tenant_id = tenant.id
     where tenant.desired = 'off'
        or ((scheduler.ready or scheduler.beat_at is null or scheduler.phase <> 'running'
             or scheduler.beat_at < now() - interval '10 seconds')
            and (launch.code is null or launch.code not in ('not_installed', 'not_connectable', 'no_engine', 'gone'))
            -- its scheduler will say in a moment; asking all that start together would keep them from starting
            and (scheduler.ready or launch.code is distinct from 'starting' or launch.retry_at is not null
                 or launch.changed_at < now() - interval '20 seconds'))
     order by tenant.id`);
  const of = (why: 'off' | 'ready' | 'silent'): string[] => rows.filter((row) => row.why === why).map((row) => row.id);
  return { off: of('off'), ready: of('ready'), silent: of('silent') };
}

/**
 * Records a heartbeat of Waterwheel, which has fewer fields. Returns false if the id belongs to a Millrace worker or another
 * key.
 */
export async function noteForeignWorker(
  db: Db,
  w: { id: string; addr: string; version: string; running: number; places: number },
  { keyId, at }: { keyId: string; at: Date },
): Promise<boolean> {
  const noted = await db.exec(sql`
    insert into worker as w (
      id, key_id, incarnation, name, addr, version, places, running, runtimes, queues, first_seen_at, beat_at)
    values (${w.id}, ${keyId}, 0, ${w.addr}, ${w.addr}, ${w.version}, ${w.places}, ${w.running}, '{}', '{}', ${at}, ${at})
    on conflict (id) do update set
      key_id = excluded.key_id, name = excluded.name, addr = excluded.addr, version = excluded.version,
      places = excluded.places, running = excluded.running, beat_at = excluded.beat_at
     where w.incarnation = 0
       and ${mayUse(keyId)}`);
  return noted === 1;
}

export async function noteGateway(
  db: Db,
  gateway: { id: string; addr: string; version: string; at: Date; lifeMs: number },
): Promise<void> {
  await db.exec(sql`
    insert into gateway (id, addr, version, serving_since, beat_at)
    values (${gateway.id}, ${gateway.addr}, ${gateway.version}, ${gateway.at}, ${gateway.at})
    on conflict (id) do update set
      -- a gap in its heartbeats is a gap in which no worker could renew a lease
      serving_since = case
        when gateway.beat_at < ${gateway.at}::timestamptz - ${gateway.lifeMs}::integer * interval '1 millisecond' then excluded.serving_since
        else gateway.serving_since
      end,
      beat_at = excluded.beat_at`);
}

export async function removeGateway(db: Db, id: string): Promise<void> {
  await db.exec(sql`delete from gateway where id = ${id}`);
}

/** Schedulers heard of since then, with their counters. */
export function schedulerTallies(db: Db, since: Date): Promise<SchedulerRow[]> {
  return db.rows<SchedulerRow>(sql`
    select tenant.id as "tenantId", tenant.name as tenant, scheduler.queued_triggers, scheduler.tally
      from scheduler
      join tenant on tenant.id = scheduler.tenant_id
     where scheduler.phase = 'running' and scheduler.beat_at > ${since}
     order by tenant.name`);
}
