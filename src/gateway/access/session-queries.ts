/** Statements about sessions of browsers and the one-time links that open them. Each belongs to a key and ends with it. */
import type { Role } from '../../contract/roles.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { PageById } from '../installation/queries.ts';

type SessionRow = { role: Role; tenantId: string | null; tenant: string | null; actor: string };

export type OpenedWith = 'key' | 'link';

export async function insertSession(
  db: Db,
  session: {
    id: string;
    hash: Buffer;
    keyId: string;
    openedWith: OpenedWith;
    role: Role;
    actor: string;
    at: Date;
    until: Date;
  },
): Promise<void> {
  // the tenant is read from the key: its name may have changed since it was looked up
  await db.exec(sql`
    insert into session (id, hash, key_id, opened_with, role, tenant_id, actor, created_at, expires_at)
    values (${session.id}, ${session.hash}, ${session.keyId}, ${session.openedWith}, ${session.role},
            (select tenant_id from key where id = ${session.keyId}), ${session.actor}, ${session.at}, ${session.until})`);
}

/** Extends the session, but writes at most once a minute. All sessions of a revoked key have ended. */
export function touchSession(db: Db, hash: Buffer, at: Date, until: Date): Promise<SessionRow | undefined> {
  return db.maybeOne<SessionRow>(sql`
    with slid as (
      update session
         set expires_at = ${until}
       where hash = ${hash} and expires_at > ${at} and expires_at < ${until}::timestamptz - interval '1 minute'
    )
    select session.role, session.tenant_id as "tenantId", tenant.name as tenant, session.actor
      from session
      join key on key.id = session.key_id
      left join tenant on tenant.id = session.tenant_id
     where session.hash = ${hash} and session.expires_at > ${at} and key.revoked_at is null`);
}

/** Those of the given hashes that belong to a key that is not revoked, or to a session that has not ended. */
export async function findValidHashes(db: Db, hashes: readonly Buffer[], at: Date): Promise<Buffer[]> {
  const rows = await db.rows<{ hash: Buffer }>(sql`
    select hash from key where hash = any(${hashes}::bytea[]) and revoked_at is null
    union all
    select session.hash
      from session
      join key on key.id = session.key_id
     where session.hash = any(${hashes}::bytea[]) and session.expires_at > ${at} and key.revoked_at is null`);
  return rows.map((row) => row.hash);
}

export interface ListedSession extends SessionRow {
  readonly id: string;
  readonly hash: Buffer;
  readonly openedWith: OpenedWith;
  readonly keyId: string;
  readonly keyName: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** Sessions that are open, the newest first. That order is stable while sessions are used, so no page misses one. */
export function listSessions(db: Db, at: Date, { after, limit }: PageById): Promise<ListedSession[]> {
  const further = after === undefined ? sql`true` : sql`session.id < ${after}`;
  return db.rows<ListedSession & Record<string, unknown>>(sql`
    select session.id, session.hash, session.role, session.tenant_id as "tenantId", tenant.name as tenant, session.actor,
           session.opened_with as "openedWith", key.id as "keyId", key.name as "keyName",
           session.created_at as "createdAt", session.expires_at as "expiresAt"
      from session
      join key on key.id = session.key_id
      left join tenant on tenant.id = session.tenant_id
     where session.expires_at > ${at} and key.revoked_at is null and ${further}
     order by session.id desc
     limit ${limit}`);
}

export type EndedSession = { id: string; actor: string; role: Role };

export function endSession(db: Db, by: { id: string } | { hash: Buffer }): Promise<EndedSession | undefined> {
  const wanted = 'id' in by ? sql`id = ${by.id}` : sql`hash = ${by.hash}`;
  return db.maybeOne<EndedSession>(sql`delete from session where ${wanted} returning id, actor, role`);
}

/** Ends every session, or all but one. Returns how many. */
export function endSessions(db: Db, exceptHash: Buffer | undefined): Promise<number> {
  return db.exec(
    exceptHash === undefined ? sql`delete from session` : sql`delete from session where hash <> ${exceptHash}`,
  );
}

export function deleteLinks(db: Db): Promise<number> {
  return db.exec(sql`delete from sign_in_link`);
}

/** `by` is the hash of the key or session that makes the link. Returns false if that is revoked or has ended. */
export async function insertLink(
  db: Db,
  link: { hash: Buffer; by: Buffer | undefined; at: Date; until: Date },
): Promise<boolean> {
  const made = await db.exec(sql`
    insert into sign_in_link (hash, key_id, created_at, expires_at)
    select ${link.hash}::bytea, key.id, ${link.at}::timestamptz, ${link.until}::timestamptz
      from key
     where key.revoked_at is null
       and (key.hash = ${link.by ?? null}
            or key.id = (select key_id from session where hash = ${link.by ?? null} and expires_at > ${link.at}))`);
  return made > 0;
}

/** The first use spends a link; of two concurrent uses, one wins. Returns the key that made the link. */
export async function spendLink(db: Db, hash: Buffer, at: Date): Promise<{ id: string; name: string } | undefined> {
  return db.maybeOne<{ id: string; name: string }>(sql`
    delete from sign_in_link
     using key
     where sign_in_link.hash = ${hash} and sign_in_link.expires_at > ${at}
       and key.id = sign_in_link.key_id and key.revoked_at is null
    returning key.id, key.name`);
}

export async function pruneSessions(db: Db, at: Date): Promise<void> {
  await db.exec(sql`delete from session where expires_at <= ${at}`);
  await db.exec(sql`delete from sign_in_link where expires_at <= ${at}`);
}
