/** Statements of the control database about tenants for display: states, slots, launchers. */
import { type Db, sql } from '../../kernel/sql.ts';
import { isHeld, isSilent } from '../../control/liveness.ts';
import { type Reason, type ReasonCode, type ReasonColumns, readReason } from '../../control/reasons.ts';

type State = 'ENABLED' | 'ALLOCATED' | 'STARTED' | 'DISABLED';
export type Process = { id: string; machine: string; pid: number };

export type TenantState = {
  id: string;
  name: string;
  database: string;
  desired: 'on' | 'off';
  ownHost: boolean;
  createdAt: Date;
  /** The launcher's decision; null: no launcher has processed the tenant yet. */
  state: State | null;
  reason: Reason | null;
  /** It is being dropped, or a drop was interrupted. */
  leaving: boolean;
  waitOn: string | null;
  version: string | null;
  failures: number | null;
  retryAt: Date | null;
  changedAt: Date | null;
  host: Process | null;
  /** No heartbeat, by the server's clock, for as long as the launcher waits before it gives a host up. */
  hostIsSilent: boolean;
  /** The last sign of life of its host or scheduler; null: unknown. */
  heardAt: Date | null;
  /** When and why its scheduler ended, by its host's last report on the present order; null: it has not. */
  endedAt: Date | null;
  endReason: Reason | null;
  /** Parts of its scheduler that fail while it runs or hangs, by the same report. */
  trouble: Reason | null;
  /** The sender of the last stop. */
  stoppedBy: string | null;
};

const columns = sql`
  tenant.id, tenant.name, tenant.database, tenant.desired, tenant.leaving is not null as leaving, tenant.own_host as "ownHost", tenant.created_at as "createdAt",
  launch.state, launch.code, launch.reason, launch.why, launch.wait_on as "waitOn", launch.version, launch.failures,
  case when tenant.desired = 'on' then launch.retry_at end as "retryAt", launch.changed_at as "changedAt",
  case when host.id is not null then json_build_object('id', host.id, 'machine', host.machine, 'pid', host.pid) end as host,
  coalesce(${isSilent}, false) as "hostIsSilent", greatest(nullif(host.beat_at, '-infinity'), report.beat_at) as "heardAt",
  case when report.phase = 'ended' then report.changed_at end as "endedAt",
  case when report.phase = 'running' or (report.phase = 'starting' and report.code = 'failing') then true end as works,
  report.code as "reportCode", report.reason as "reportReason", report.why as "reportWhy",
  case when tenant.desired = 'off'
       then (select sender from message where tenant_id = tenant.id and kind = 'stop' order by id desc limit 1)
  end as "stoppedBy"`;

const joined = sql`
  from tenant
  left join launch on launch.tenant_id = tenant.id
  left join host on host.id = launch.host_id and (launch.ordered or launch.ending)
  left join scheduler report on report.tenant_id = tenant.id and report.order_no = launch.order_no`;

interface PageOf {
  /** The name or id of the last item of the previous page. */
  readonly after: string | undefined;
  readonly limit: number;
}

type StateRow = Omit<TenantState, 'reason' | 'endReason' | 'trouble'> &
  ReasonColumns & {
    works: boolean | null;
    reportCode: ReasonCode | null;
    reportReason: string | null;
    reportWhy: unknown;
  };

function stateOf({ works, reportCode, reportReason, reportWhy, code, reason, why, ...row }: StateRow): TenantState {
  const report = readReason({ code: reportCode, reason: reportReason, why: reportWhy }, 'error');
  return {
    ...row,
    reason: readReason({ code, reason, why }),
    endReason: row.endedAt === null ? null : report,
    trouble: works === true ? report : null,
  };
}

/** Tenants by name. */
export async function tenantStates(db: Db, { after, limit }: PageOf): Promise<TenantState[]> {
  const further = after === undefined ? sql`true` : sql`tenant.name > ${after}`;
  const rows = await db.rows<StateRow>(sql`
    select ${columns} ${joined} where ${further} order by tenant.name limit ${limit}`);
  return rows.map(stateOf);
}

export async function tenantState(db: Db, by: { name: string } | { id: string }): Promise<TenantState | undefined> {
  const wanted = 'id' in by ? sql`tenant.id = ${by.id}` : sql`tenant.name = ${by.name}`;
  const row = await db.maybeOne<StateRow>(sql`select ${columns} ${joined} where ${wanted}`);
  return row === undefined ? undefined : stateOf(row);
}

export type SlotRow = {
  id: string;
  kind: 'launcher' | 'scheduler';
  tenantId: string | null;
  tenant: string | null;
  holder: Process | null;
  reason: string;
  since: Date;
  /** The same in microseconds, for the cursor of a page. */
  sinceMicros: string;
  position: number | null;
};

/** The last slot of a page. */
export interface SlotPlace {
  readonly waits: boolean;
  readonly sinceMicros: string;
  readonly id: string;
}

/** Taken slots, the oldest first; then waiting ones. */
export function slotRows(db: Db, page: { after: SlotPlace | undefined; limit: number }): Promise<SlotRow[]> {
  const { after } = page;
  const further = after
    ? sql`(granted_at is null, "sinceMicros", id) > (${after.waits}, ${after.sinceMicros}::bigint, ${after.id}::uuid)`
    : sql`true`;
  return db.rows<SlotRow>(sql`
    with stood as (
      select slot.*, coalesce(granted_at, asked_at) as since,
             (extract(epoch from coalesce(granted_at, asked_at)) * 1000000)::bigint as "sinceMicros",
             case when granted_at is null
                  then (row_number() over (partition by granted_at is null order by asked_at, id))::integer end as position
        from slot
    ),
    page as (
      select * from stood where ${further} order by granted_at is null, "sinceMicros", id limit ${page.limit}
    )
    select page.id, page.kind, page.tenant_id as "tenantId", tenant.name as tenant, page.reason, page.since,
           page."sinceMicros"::text as "sinceMicros", page.position,
           case when process.id is not null
                then json_build_object('id', process.id, 'machine', process.machine, 'pid', process.pid) end as holder
      from page
      left join tenant on tenant.id = page.tenant_id
      left join (
        select id, machine, pid from host
        union all
        select id, machine, pid from launcher
      ) as process on process.id = page.holder
     order by page.granted_at is null, page."sinceMicros", page.id`);
}

/** The numbers of taken and waiting slots, and the position of one tenant's scheduler in the queue. */
export function slotCounts(
  db: Db,
  tenantId?: string,
): Promise<{ taken: number; waiting: number; position: number | null }> {
  return db.one(sql`
    with own as (
      select asked_at, id from slot
       where kind = 'scheduler' and tenant_id = ${tenantId ?? null}::uuid and granted_at is null
    )
    select count(*) filter (where granted_at is not null)::integer as taken,
           count(*) filter (where granted_at is null)::integer as waiting,
           case when exists (select from own)
                then count(*) filter (
                  where granted_at is null and (slot.asked_at, slot.id) <= (select asked_at, id from own)
                )::integer end as position
      from slot`);
}

export type EngineUse = { version: string; tenants: string[]; count: number };

/** The first tenants of each version by name, and their number. */
export function engineUses(db: Db, most: number): Promise<EngineUse[]> {
  return db.rows<EngineUse>(sql`
    with placed as (
      select launch.version, tenant.name, row_number() over (partition by launch.version order by tenant.name) as place
        from launch
        join tenant on tenant.id = launch.tenant_id
       where launch.version is not null
    )
    select version, array_agg(name order by name) filter (where place <= ${most}) as tenants, count(*)::integer as count
      from placed
     group by version`);
}

export type LauncherRow = Process & { active: boolean; epoch: number; startedAt: Date };

/**
 * The active launcher, and standby launchers with a heartbeat within 5 s by the server's clock. A launcher whose lease has
 * expired is not on standby: it is dead or frozen, and takes the lease again with its next heartbeat if it can.
 */
export function launcherRows(db: Db, most: number): Promise<LauncherRow[]> {
  return db.rows<LauncherRow>(sql`
    select launcher.id, launcher.machine, launcher.pid, launcher.started_at as "startedAt", lease.epoch,
           held.holder is not null as active
      from launcher
     cross join launcher_lease lease
      left join (select holder from launcher_lease where ${isHeld}) held on held.holder = launcher.id
     where held.holder is not null
        or (lease.holder is distinct from launcher.id and launcher.beat_at > clock_timestamp() - interval '5 seconds')
     -- the active one is among them, however many stand by
     order by active desc, launcher.started_at, launcher.id
     limit ${most}`);
}

export type HostRow = Process & {
  engine: string;
  tenants: number;
  memory: number;
  startedAt: Date;
  beatAt: Date | null;
};

/** Hosts by id, which is their start order. */
export function hostRows(db: Db, { after, limit }: PageOf): Promise<HostRow[]> {
  const further = after === undefined ? sql`true` : sql`host.id > ${after}`;
  return db.rows<HostRow>(sql`
    select host.id, host.machine, host.pid, host.engine, host.memory, host.started_at as "startedAt",
           nullif(host.beat_at, '-infinity') as "beatAt",
           (select count(*)::integer from launch where launch.host_id = host.id and launch.ordered) as tenants
      from host
     where ${further}
     order by host.id
     limit ${limit}`);
}
