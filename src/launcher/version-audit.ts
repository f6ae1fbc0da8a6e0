/**
 * The audit shows every change of a tenant's version. A command writes the event for its own change. The launcher writes it for
 * changes by plain SQL, and for a command that died before it wrote the event. Each change gets one event: the launcher records
 * the version that it has found (`launch.told_version`), and both hold the tenant while they check whether the other has written
 * the event.
 */
import { type EventDraft, tenantTopic } from '../events/append.ts';
import { type Db, sql } from '../kernel/sql.ts';

export interface FoundVersion {
  readonly tenantId: string;
  readonly name: string;
  /** Null: not installed. */
  readonly version: string | null;
}

export interface VersionEvent {
  readonly draft: EventDraft;
  readonly actor: string;
}

/** Types of events that record the version of a tenant; the newest of them counts. */
const versionEventTypes = [
  'tenant.created',
  'tenant.adopted',
  'tenant.adoption_failed',
  'tenant.upgraded',
  'tenant.released',
  'tenant.version_changed',
];

/** The version of a tenant by its newest event. A release names the version that it has removed. */
const recordedVersionOf = (tenantId: ReturnType<typeof sql>): ReturnType<typeof sql> => sql`
  select case
           when type = 'tenant.released' then null
           else coalesce(body::jsonb ->> 'to', body::jsonb ->> 'version')
         end as version
    from event
   where subject = ${tenantId} and topic_id = ${tenantTopic} and type = any(${versionEventTypes}::text[])
   order by seq desc
   limit 1`;

/** Records the versions found, in a transaction that holds the tenants. Returns the events that are still missing. */
export async function noteVersions(tx: Db, found: readonly FoundVersion[]): Promise<VersionEvent[]> {
  if (found.length === 0) return [];
  const rows = await tx.rows<{
    tenantId: string;
    name: string;
    from: string | null;
    to: string | null;
    actor: string;
  }>(sql`
    with noted as (
      update launch
         set told_version = f.version
        from unnest(${found.map((f) => f.tenantId)}::uuid[], ${found.map((f) => f.name)}::text[],
                    ${found.map((f) => f.version)}::text[]) as f (tenant_id, name, version)
        join launch was on was.tenant_id = f.tenant_id
       where launch.tenant_id = f.tenant_id and launch.told_version is distinct from f.version
      returning launch.tenant_id, f.name, was.told_version as was, f.version
    )
    select noted.tenant_id as "tenantId", noted.name, noted.was as "from", noted.version as "to",
           coalesce(message.sender, 'sql') as actor
      from noted
      left join lateral (select true as spoken, t.version from (${recordedVersionOf(sql`noted.tenant_id`)}) as t) as told on true
      -- the sender of a command that died before it wrote the event
      left join lateral (
        select last.sender
          from (select sender, cause from message
                 where tenant_id = noted.tenant_id and kind = 'restart' order by id desc limit 1) as last
         where last.cause in ('install ' || noted.version, 'upgrade to ' || noted.version)
            or (noted.version is null and last.cause = 'release')
      ) as message on true
     where told.spoken is null or told.version is distinct from noted.version`);
  return rows.map(({ tenantId, name, from, to, actor }) => {
    return { draft: { type: 'tenant.version_changed', subject: tenantId, body: { name, from, to } }, actor };
  });
}

/** For a command, before it writes its event: whether the launcher has written it. Locks the tenant until the commit. */
export async function isVersionRecorded(tx: Db, tenantId: string, version: string): Promise<boolean> {
  await tx.exec(sql`select from tenant where id = ${tenantId} for update`);
  const recorded = await tx.maybeOne<{ version: string | null }>(recordedVersionOf(sql`${tenantId}`));
  return recorded?.version === version;
}
