/** Statements on the control database about conductors, and about the tenants that have work for them. */
import type { ConductorTally } from '../contract/conductor-tally.ts';
import { type Db, sql } from '../kernel/sql.ts';
import type { TenantRow } from './queries.ts';

/** A conductor without a beat for this long is dead, and others take over its executions. Conductors beat every second. */
const conductorSilentMs = 5_000;
/** A conductor that has missed beats. If its process is gone from this machine, it counts as dead at once. */
const missedBeatMs = 2_500;
/** Conductors open a tenant when its next timer is due within this time. */
const nearMs = 60_000;
/** A tenant without such a beat of its scheduler may have work that nobody has announced. */
const schedulerSilentMs = 10_000;

const isAlive = sql`
  conductor.lost_at is null and conductor.beat_at > clock_timestamp() - ${conductorSilentMs} * interval '1 millisecond'`;

export interface ConductorBeat {
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
  readonly version: string;
  readonly functions: readonly string[];
  /** Tenants that it serves now. */
  readonly tenants: readonly string[];
  /** Undefined: not changed. */
  readonly tally: ConductorTally | undefined;
  /** Whether it has beaten under this id before. */
  readonly isKnown: boolean;
}

export interface OtherConductor {
  readonly id: string;
  readonly pid: number;
  readonly functions: readonly string[];
  readonly isAlive: boolean;
  readonly isLeaving: boolean;
  /** It is on the same machine and has missed beats. */
  readonly isNear: boolean;
  /** Of a dead one: tenants whose executions wait for a new owner. */
  readonly tenants: readonly string[];
}

export interface ConductorAnswer {
  /**
   * Others may have taken this conductor for dead: it was silent for too long while another one was there, or its row is gone. Then
   * nothing was written.
   */
  readonly isDoubted: boolean;
  readonly others: readonly OtherConductor[];
}

/** Registers a conductor or renews its beat. */
export async function beatConductor(db: Db, beat: ConductorBeat): Promise<ConductorAnswer> {
  const tally = beat.tally === undefined ? null : JSON.stringify(beat.tally);
  const { answer } = await db.one<{ answer: ConductorAnswer }>(sql`
    with doubt as (
      select ${beat.isKnown} and not exists (
               select from conductor as own
                where own.id = ${beat.id} and own.lost_at is null
                  and (own.beat_at > clock_timestamp() - ${conductorSilentMs} * interval '1 millisecond'
                       or not exists (
                         select from conductor as rival where rival.id <> own.id and rival.beat_at > own.beat_at))
             ) as doubted
    ),
    beaten as (
      insert into conductor (id, machine, pid, version, functions, state, tenants, tally, started_at, beat_at)
      select ${beat.id}, ${beat.machine}, ${beat.pid}, ${beat.version}, ${beat.functions}, 'up', ${beat.tenants}::uuid[],
             ${tally}::jsonb, clock_timestamp(), clock_timestamp()
        from doubt
       where not doubted
      on conflict (id) do update set
        tenants = excluded.tenants, tally = coalesce(excluded.tally, conductor.tally), beat_at = excluded.beat_at
    )
    select json_build_object(
             'isDoubted', (select doubted from doubt),
             'others', coalesce(json_agg(json_build_object(
               'id', id, 'pid', pid, 'functions', functions, 'isAlive', ${isAlive}, 'isLeaving', state = 'leaving',
               'isNear', machine = ${beat.machine} and lost_at is null
                         and beat_at < clock_timestamp() - ${missedBeatMs} * interval '1 millisecond',
               'tenants', case when ${isAlive} then '{}' else tenants end)), '[]')) as answer
      from conductor
     where id <> ${beat.id} and (${isAlive} or tenants <> '{}')`);
  return answer;
}

/** The conductor takes no new executions from now on. */
export async function markConductorLeaving(db: Db, id: string): Promise<void> {
  await db.exec(sql`update conductor set state = 'leaving' where id = ${id}`);
}

/** Removes a conductor that leaves nothing behind. */
export async function removeConductor(db: Db, id: string): Promise<void> {
  await db.exec(sql`delete from conductor where id = ${id}`);
}

/** Marks conductors as dead, so that others take over at once. `tenants`: what they leave behind; undefined: as recorded. */
export async function markConductorsLost(db: Db, ids: readonly string[], tenants?: readonly string[]): Promise<void> {
  await db.exec(sql`
    update conductor
       set lost_at = clock_timestamp(), tenants = coalesce(${tenants ?? null}::uuid[], tenants)
     where id = any (${ids}::uuid[]) and lost_at is null`);
}

/** All conductors are dead, because the caller owns the installation and they were its processes. */
export async function markAllConductorsLost(db: Db): Promise<void> {
  await db.exec(sql`update conductor set lost_at = clock_timestamp() where lost_at is null`);
}

/** The executions of a tenant that these dead conductors drove have been looked after. */
export async function noteTakenOver(db: Db, tenantId: string, ids: readonly string[]): Promise<void> {
  await db.exec(sql`
    update conductor set tenants = array_remove(tenants, ${tenantId}::uuid) where id = any (${ids}::uuid[])`);
}

/** Removes the rows of conductors that have been silent for long. Returns how many. */
export function forgetConductors(db: Db, before: Date): Promise<number> {
  return db.exec(sql`delete from conductor where beat_at < ${before}`);
}

export type FlowTenantRow = TenantRow & {
  /** `unknown`: its scheduler is silent. */
  work: 'some' | 'none' | 'unknown';
};

/** Tenants that are switched on and usable as far as the launcher knows, and whether they have work for conductors. */
export function listFlowTenants(db: Db): Promise<FlowTenantRow[]> {
  return db.rows<FlowTenantRow>(sql`
    select tenant.id, tenant.name, tenant.database, tenant.desired, tenant.database_oid as "databaseOid",
           case
             when scheduler.flow_inbox
               or scheduler.next_timer_at < clock_timestamp() + ${nearMs} * interval '1 millisecond' then 'some'
             when scheduler.phase = 'running'
              and scheduler.beat_at > clock_timestamp() - ${schedulerSilentMs} * interval '1 millisecond' then 'none'
             else 'unknown'
           end as work
      from tenant
      left join launch on launch.tenant_id = tenant.id
      left join scheduler on scheduler.tenant_id = tenant.id
     where tenant.desired = 'on' and launch.state is distinct from 'DISABLED'
       and (launch.code is null or launch.code not in ('not_installed', 'not_connectable', 'no_engine', 'gone'))
     order by tenant.id`);
}

export type ConductorRow = {
  id: string;
  machine: string;
  pid: number;
  version: string;
  functions: string[];
  startedAt: Date;
  beatAt: Date;
};

export interface ConductorStanding {
  readonly conductors: readonly ConductorRow[];
  /** Tenants with messages, or overdue timers, for at least some seconds. */
  readonly waiting: number;
}

/** A timer that is this late has not found a conductor. */
const overdueMs = 10_000;

/** Those that are alive. */
export function listConductors(db: Db): Promise<ConductorRow[]> {
  return db.rows<ConductorRow>(sql`
    select id, machine, pid, version, functions, started_at as "startedAt", beat_at as "beatAt"
      from conductor where ${isAlive} order by started_at, id`);
}

/** The conductors that are alive, and the number of tenants that need one. */
export async function readConductorStanding(db: Db): Promise<ConductorStanding> {
  const [conductors, { waiting }] = await Promise.all([
    listConductors(db),
    db.one<{ waiting: number }>(sql`
      select count(*)::integer as waiting
        from scheduler
        join tenant on tenant.id = scheduler.tenant_id
       where tenant.desired = 'on'
         and (flow_inbox or next_timer_at < clock_timestamp() - ${overdueMs} * interval '1 millisecond')`),
  ]);
  return { conductors, waiting };
}

/** What an operator must know about conductors. */
export function conductorWarnings({ conductors, waiting }: ConductorStanding): string[] {
  if (conductors.length > 0 || waiting === 0) return [];
  const whose = waiting === 1 ? 'a tenant' : `${waiting} tenants`;
  return [`no conductor runs, so flows of ${whose} wait; start one with \`millrace conductor\``];
}

export type ConductorTallyRow = { id: string; tally: ConductorTally | null };

/** The tallies of conductors that are alive. */
export function conductorTallies(db: Db): Promise<ConductorTallyRow[]> {
  return db.rows<ConductorTallyRow>(sql`select id, tally from conductor where ${isAlive} order by started_at, id`);
}
