/** Statements on the control database about couriers, and the tenants whose bus they serve. */
import type { CourierTally } from '../contract/courier-tally.ts';
import { type Db, sql } from '../kernel/sql.ts';
import type { TenantRow } from './queries.ts';

/** A courier without a beat for this long is lost. Couriers beat every 2 s. */
const courierSilentMs = 10_000;

/**
 * A courier that has missed a beat. Only its process is looked for: machines that share a host name, such as cloned ones, would
 * otherwise take each other's couriers for gone.
 */
const missedBeatMs = 3_000;

/** Couriers whose process is gone are remembered for so long. After it, their errands have returned anyway. */
const lostForMs = 600_000;

const isAlive = sql`courier.lost_at is null and courier.beat_at > clock_timestamp() - ${courierSilentMs} * interval '1 millisecond'`;

export interface CourierBeat {
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
  readonly version: string;
  /** Undefined: not changed. */
  readonly tally: CourierTally | undefined;
}

export interface OtherCouriers {
  /** How many others are alive. */
  readonly alive: number;
  /** Couriers on the same machine that have missed a beat. */
  readonly near: readonly { readonly id: string; readonly pid: number }[];
  /** Couriers whose process is gone. */
  readonly lost: readonly string[];
}

/** Registers a courier or renews its beat. One that was taken for lost, or was removed, counts again. */
export async function beatCourier(db: Db, beat: CourierBeat): Promise<OtherCouriers> {
  const tally = beat.tally === undefined ? null : JSON.stringify(beat.tally);
  const { others } = await db.one<{ others: OtherCouriers }>(sql`
    with beaten as (
      insert into courier (id, machine, pid, version, tally, started_at, beat_at)
      values (${beat.id}, ${beat.machine}, ${beat.pid}, ${beat.version}, ${tally}::jsonb, clock_timestamp(), clock_timestamp())
      on conflict (id) do update set
        tally = coalesce(excluded.tally, courier.tally), beat_at = excluded.beat_at, lost_at = null
    )
    select json_build_object(
             'alive', count(*) filter (where ${isAlive}),
             'near', coalesce(
               json_agg(json_build_object('id', id, 'pid', pid)) filter (
                 where machine = ${beat.machine} and lost_at is null
                   and beat_at < clock_timestamp() - ${missedBeatMs} * interval '1 millisecond'), '[]'),
             'lost', coalesce(
               json_agg(id) filter (where lost_at > clock_timestamp() - ${lostForMs} * interval '1 millisecond'), '[]')) as others
      from courier
     where id <> ${beat.id}`);
  return others;
}

export async function removeCourier(db: Db, id: string): Promise<void> {
  await db.exec(sql`delete from courier where id = ${id}`);
}

/** Removes the rows of couriers that have been silent for long. Returns how many. */
export function forgetCouriers(db: Db, before: Date): Promise<number> {
  return db.exec(sql`delete from courier where beat_at < ${before}`);
}

/** Notes that a process has ended, so that the errands of its courier return at once. */
export async function markCourierLost(db: Db, { machine, pid }: { machine: string; pid: number }): Promise<void> {
  await db.exec(sql`
    update courier set lost_at = clock_timestamp() where machine = ${machine} and pid = ${pid} and lost_at is null`);
}

/** The same for couriers by id. */
export async function markCouriersLost(db: Db, ids: readonly string[]): Promise<void> {
  await db.exec(sql`
    update courier set lost_at = clock_timestamp() where id = any (${ids}::uuid[]) and lost_at is null`);
}

/** Tenants whose events are delivered: switched on, with subscribers, and usable as far as the launcher knows. */
export function listServedTenants(db: Db): Promise<TenantRow[]> {
  return db.rows<TenantRow>(sql`
    select tenant.id, tenant.name, tenant.database, tenant.desired, tenant.database_oid as "databaseOid"
      from bus
      join tenant on tenant.id = bus.tenant_id
      left join launch on launch.tenant_id = tenant.id
     where bus.subscribers > 0 and tenant.desired = 'on' and launch.state is distinct from 'DISABLED'
       and (launch.code is null or launch.code not in ('not_installed', 'not_connectable', 'no_engine', 'gone'))
     order by tenant.id`);
}

export async function hasSubscribers(db: Db): Promise<boolean> {
  const row = await db.one<{ found: boolean }>(sql`
    select exists (select from bus where subscribers > 0) as found`);
  return row.found;
}

type CourierRow = {
  id: string;
  machine: string;
  pid: number;
  version: string;
  startedAt: Date;
  beatAt: Date;
};

export interface CourierStanding {
  readonly couriers: CourierRow[];
  /** Tenants with subscribers for at least `courierSilentMs`. */
  readonly served: number;
}

/** The couriers that are alive, and the number of tenants that need one. */
export async function readCourierStanding(db: Db): Promise<CourierStanding> {
  const [couriers, { served }] = await Promise.all([
    db.rows<CourierRow>(sql`
      select id, machine, pid, version, started_at as "startedAt", beat_at as "beatAt"
        from courier where ${isAlive} order by started_at, id`),
    db.one<{ served: number }>(sql`
      select count(*)::integer as served
        from bus
        join tenant on tenant.id = bus.tenant_id
       where bus.subscribers > 0 and tenant.desired = 'on'
         and bus.changed_at < clock_timestamp() - ${courierSilentMs} * interval '1 millisecond'`),
  ]);
  return { couriers, served };
}

/** What an operator must know about couriers. */
export function courierWarnings({ couriers, served }: CourierStanding): string[] {
  if (couriers.length > 0 || served === 0) return [];
  const whose = served === 1 ? 'a tenant with subscribers' : `${served} tenants with subscribers`;
  return [`no courier runs, so the events of ${whose} are not delivered; start one with \`millrace courier\``];
}

export type TallyRow = { id: string; tally: CourierTally | null };

/** The tallies of couriers that are alive. */
export function courierTallies(db: Db): Promise<TallyRow[]> {
  return db.rows<TallyRow>(sql`select id, tally from courier where ${isAlive} order by started_at, id`);
}
