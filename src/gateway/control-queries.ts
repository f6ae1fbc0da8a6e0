/** Statements of the control database that the gateway needs: keys, sessions, links, workers, gateways. */
import type { Role } from '../contract/roles.ts';
import type { HeartbeatRequest } from '../contract/wire.ts';
import { type Db, sql } from '../kernel/sql.ts';
import type { SchedulerRow } from './scheduler-metrics.ts';

/** Stands for the worker within `up`, which has no key, where the id of a key is kept. */
export const inProcessKey = '00000000-0000-0000-0000-000000000000';

export type KeyRow = { id: string; name: string; role: Role; tenantId: string | null; tenant: string | null };

export function findKey(db: Db, hash: Buffer): Promise<KeyRow | undefined> {
  return db.maybeOne<KeyRow>(sql`
    select key.id, key.name, key.role, key.tenant_id as "tenantId", tenant.name as tenant
      from key
      left join tenant on tenant.id = key.tenant_id
     where key.hash = ${hash} and key.revoked_at is null`);
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

export function listKeys(db: Db): Promise<(Omit<KeyRow, 'tenantId'> & { created_at: Date; created_by: string })[]> {
  return db.rows(sql`
    select key.id, key.name, key.role, tenant.name as tenant, key.created_at, key.created_by
      from key
      left join tenant on tenant.id = key.tenant_id
     where key.revoked_at is null
     order by key.created_at, key.id`);
}

/** The key's sessions end with it. */
export async function revokeKey(db: Db, id: string, at: Date): Promise<{ name: string; role: Role } | undefined> {
  const row = await db.maybeOne<{ name: string; role: Role }>(sql`
    update key set revoked_at = ${at} where id = ${id} and revoked_at is null returning name, role`);
  await db.exec(sql`delete from session where key_id = ${id}`);
  return row;
}

/** Other keys made for the same fixed purpose (the root key of an installation) stop working, and their sessions end. */
export async function retireKeysOf(db: Db, createdBy: string, exceptHash: Buffer, at: Date): Promise<void> {
  await db.exec(sql`
    with retired as (
      update key set revoked_at = ${at}
       where created_by = ${createdBy} and hash <> ${exceptHash} and revoked_at is null
      returning id
    )
    delete from session
     using retired
     where session.key_id = retired.id`);
}

export function reviveKey(db: Db, hash: Buffer): Promise<number> {
  return db.exec(sql`update key set revoked_at = null where hash = ${hash} and revoked_at is not null`);
}

export type SessionRow = { role: Role; tenantId: string | null; tenant: string | null; actor: string };

export async function insertSession(
  db: Db,
  session: {
    hash: Buffer;
    keyId: string | null;
    role: Role;
    actor: string;
    at: Date;
    until: Date;
  },
): Promise<void> {
  // the tenant is the key's own: a name may have changed since it was looked up
  await db.exec(sql`
    insert into session (hash, key_id, role, tenant_id, actor, created_at, expires_at)
    values (${session.hash}, ${session.keyId}, ${session.role}, (select tenant_id from key where id = ${session.keyId}),
            ${session.actor}, ${session.at}, ${session.until})`);
}

/** Slides the session's end, but writes at most once a minute of its life. A revoked key's sessions are over, whenever made. */
export function touchSession(db: Db, hash: Buffer, at: Date, until: Date): Promise<SessionRow | undefined> {
  return db.maybeOne<SessionRow>(sql`
    with slid as (
      update session
         set expires_at = ${until}
       where hash = ${hash} and expires_at > ${at} and expires_at < ${until}::timestamptz - interval '1 minute'
    )
    select session.role, session.tenant_id as "tenantId", tenant.name as tenant, session.actor
      from session
      left join key on key.id = session.key_id
      left join tenant on tenant.id = session.tenant_id
     where session.hash = ${hash} and session.expires_at > ${at} and key.revoked_at is null`);
}

/** Which of these are hashes of keys that are not revoked, or of sessions that are not over. */
export async function stillGood(db: Db, hashes: readonly Buffer[], at: Date): Promise<Buffer[]> {
  const rows = await db.rows<{ hash: Buffer }>(sql`
    select hash from key where hash = any(${hashes}::bytea[]) and revoked_at is null
    union all
    select session.hash
      from session
      left join key on key.id = session.key_id
     where session.hash = any(${hashes}::bytea[]) and session.expires_at > ${at} and key.revoked_at is null`);
  return rows.map((row) => row.hash);
}

export function deleteSession(db: Db, hash: Buffer): Promise<number> {
  return db.exec(sql`delete from session where hash = ${hash}`);
}

export async function insertLink(db: Db, hash: Buffer, at: Date, until: Date): Promise<void> {
  await db.exec(sql`insert into sign_in_link (hash, created_at, expires_at) values (${hash}, ${at}, ${until})`);
}

/** A link is spent by its first use; two at once: one wins. */
export async function spendLink(db: Db, hash: Buffer, at: Date): Promise<boolean> {
  return (await db.exec(sql`delete from sign_in_link where hash = ${hash} and expires_at > ${at}`)) > 0;
}

export async function pruneSessions(db: Db, at: Date): Promise<void> {
  await db.exec(sql`delete from session where expires_at <= ${at}`);
  await db.exec(sql`delete from sign_in_link where expires_at <= ${at}`);
}

/** The key that a worker's id belongs to. Undefined: it belongs to nobody, or its key was revoked. */
export async function findWorkerKey(db: Db, worker: string): Promise<string | undefined> {
  const row = await db.maybeOne<{ keyId: string }>(sql`
    select worker.key_id as "keyId"
      from worker
      left join key on key.id = worker.key_id and key.revoked_at is null
     where worker.id = ${worker} and (key.id is not null or worker.key_id = ${inProcessKey})`);
  return row?.keyId;
}

/**
 * An older incarnation of the same worker does not overwrite a newer one, nor does a worker of another key. Answers the
 * tenants that its last heartbeat, or that of its earlier life, was about, and those that have given it runs since;
 * undefined where it was refused.
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
        id, key_id, incarnation, name, addr, version, places, running, runtimes, queues, tenants, first_seen_at, beat_at)
      values (${beat.worker}, ${keyId}, ${beat.incarnation}, ${beat.name}, ${beat.addr}, ${beat.version}, ${beat.places},
              ${beat.taken ?? beat.holds.length}, ${beat.runtimes}, ${beat.queues}, ${tenants}, ${at}, ${at})
      on conflict (id) do update set
        key_id = excluded.key_id, incarnation = excluded.incarnation, name = excluded.name, addr = excluded.addr,
        version = excluded.version, places = excluded.places, running = excluded.running, runtimes = excluded.runtimes, queues = excluded.queues,
        tenants = excluded.tenants, beat_at = excluded.beat_at
       where w.incarnation <= excluded.incarnation
         and (w.key_id is null or w.key_id = excluded.key_id
              or not (w.key_id = ${inProcessKey} or exists (select from key where id = w.key_id and revoked_at is null)))
      returning id
    )
    select coalesce((select tenants from before), '{}') as tenants, exists (select from noted) as "isNoted"`);
  return row.isNoted ? row.tenants : undefined;
}

/** Adds tenants to those that these workers' next heartbeats are about. */
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
 * Which tenants a claim may concern, without asking any of them: those that are switched off, those whose schedulers say
 * that runs are ready (a silent one keeps its last word), and those whose schedulers say nothing, save where it is known
 * that nothing could be claimed.
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

/** Waterwheel's heartbeat knows less; it must not disturb a worker of ours. */
export async function noteForeignWorker(
  db: Db,
  w: { id: string; addr: string; version: string; running: number; places: number },
  at: Date,
): Promise<void> {
  await db.exec(sql`
    insert into worker (id, incarnation, name, addr, version, places, running, runtimes, queues, first_seen_at, beat_at)
    values (${w.id}, 0, ${w.addr}, ${w.addr}, ${w.version}, ${w.places}, ${w.running}, '{}', '{}', ${at}, ${at})
    on conflict (id) do update set
      addr = excluded.addr, version = excluded.version, places = excluded.places, running = excluded.running,
      beat_at = excluded.beat_at
     where worker.incarnation = 0`);
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

/** Schedulers that were heard of since then, and what they have done. */
export function schedulerTallies(db: Db, since: Date): Promise<SchedulerRow[]> {
  return db.rows<SchedulerRow>(sql`
    select tenant.id as "tenantId", tenant.name as tenant, scheduler.queued_triggers, scheduler.tally
      from scheduler
      join tenant on tenant.id = scheduler.tenant_id
     where scheduler.phase = 'running' and scheduler.beat_at > ${since}
     order by tenant.name`);
}
