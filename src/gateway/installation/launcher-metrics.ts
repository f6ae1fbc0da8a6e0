/**
 * Metrics of the launcher in the text format of Prometheus: tenants by state, slots, hosts, launchers, and workers by runtime. They are read from the
 * control database at each scrape, and only for root's key.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { isHeld, isSilent } from '../../control/liveness.ts';
import { reasonCodes } from '../../control/reasons.ts';
import { headOf, escaped } from './metric-lines.ts';

const states = ['STARTED', 'ALLOCATED', 'ENABLED', 'DISABLED'] as const;

export type LauncherFigures = {
  tenants: Readonly<Record<string, number>>;
  /** By the code of the reason. */
  notRunning: Readonly<Record<string, number>>;
  /** The number of orders to start it, and of failures in a row. */
  schedulers: readonly { readonly tenant: string; readonly starts: number; readonly failures: number }[];
  hosts: { readonly alive: number; readonly leaving: number; readonly silent: number };
  launchers: { readonly active: number; readonly standby: number };
  slots: { readonly limit: number; readonly taken: number; readonly waiting: number };
  /** Workers alive by the runtimes that they have, and by those that are not available on them now. */
  workers: {
    readonly serving: Readonly<Record<string, number>>;
    readonly unavailable: Readonly<Record<string, number>>;
  };
};

export interface FigureOptions {
  /** The limit if none is stored in the control database. */
  readonly slotLimit: number;
  /** How long a worker may be silent before it counts as gone. */
  readonly workerLifeMs: number;
}

export function readLauncherFigures(db: Db, { slotLimit, workerLifeMs }: FigureOptions): Promise<LauncherFigures> {
  return db.one<LauncherFigures>(sql`
    with tenants as (
      select tenant.name, coalesce(launch.state, 'ENABLED') as state, launch.failures, launch.order_no,
             -- only a launcher changes STARTED, and none may be active
             case when launch.state <> 'STARTED' then launch.code
                  when report.phase = 'ended' then coalesce(report.code, 'crashed')
                  when host.id is null or ${isSilent} then 'silent' end as code
        from tenant
        left join launch on launch.tenant_id = tenant.id
        left join host on host.id = launch.host_id and (launch.ordered or launch.ending)
        left join scheduler report on report.tenant_id = tenant.id and report.order_no = launch.order_no
    ),
    alive as (
      select runtimes, unavailable
        from worker
       where places > 0 and beat_at > clock_timestamp() - ${workerLifeMs} * interval '1 millisecond'
    )
    select (select coalesce(json_object_agg(state, n), '{}')
              from (select state, count(*)::integer as n from tenants group by state) as by_state) as tenants,
           (select coalesce(json_object_agg(code, n), '{}')
              from (select code, count(*)::integer as n from tenants
                     where code is not null group by code) as by_code) as "notRunning",
           (select coalesce(json_agg(json_build_object(
                     'tenant', name, 'starts', coalesce(order_no, 0), 'failures', coalesce(failures, 0)) order by name), '[]')
              from tenants) as schedulers,
           (select json_build_object(
                     'silent', count(*) filter (where ${isSilent}),
                     'leaving', count(*) filter (where leaving and not (${isSilent})),
                     'alive', count(*) filter (where not leaving and not (${isSilent})))
              from host) as hosts,
           (select json_build_object(
                     'active', count(*) filter (where id = held.holder),
                     'standby', count(*) filter (where id is distinct from held.holder
                                                   and beat_at > clock_timestamp() - interval '5 seconds'))
              from launcher left join (select holder from launcher_lease where ${isHeld}) as held on true) as launchers,
           json_build_object(
             'limit', coalesce((select value::integer from setting
                                 where name = 'max_background_workers' and value ~ '^[0-9]{1,6}$'), ${slotLimit}::integer),
             'taken', (select count(*) from slot where granted_at is not null),
             'waiting', (select count(*) from slot where granted_at is null)) as slots,
           json_build_object(
             'serving', (select coalesce(json_object_agg(kind, n order by kind), '{}')
                           from (select kind, count(*)::integer as n
                                   from alive, unnest(runtimes) as kind group by kind) as by_kind),
             'unavailable', (select coalesce(json_object_agg(kind, n order by kind), '{}')
                               from (select kind, count(*)::integer as n
                                       from alive, jsonb_object_keys(unavailable) as kind group by kind) as by_kind)) as workers`);
}

export function launcherMetrics(figures: LauncherFigures): string {
  const { tenants, notRunning, schedulers, hosts, launchers, slots, workers } = figures;
  const of = (value: number | undefined): number => value ?? 0;
  const lines = [
    ...gauge(
      'tenants',
      'Tenants by the state of their scheduler',
      'state',
      tally(states, (s) => of(tenants[s])),
    ),
    ...gauge(
      'tenants_not_running',
      'Tenants whose scheduler does not run, by the reason',
      'reason',
      tally([...reasonCodes, 'silent'], (code) => of(notRunning[code])),
    ),
    ...gauge('hosts', 'Host processes', 'state', Object.entries(hosts)),
    ...gauge('launchers', 'Launchers; none active: nothing is started', 'state', Object.entries(launchers)),
    ...gauge('slots', 'Slots taken and waited for', 'state', [
      ['taken', slots.taken],
      ['waiting', slots.waiting],
    ]),
    ...headOf('slots_limit', 'gauge', 'max_background_workers'),
    `millrace_slots_limit ${slots.limit}`,
    ...gauge('workers', 'Workers that take tasks of a runtime', 'runtime', Object.entries(workers.serving)),
    ...gauge(
      'workers_unavailable',
      'Workers that would take tasks of a runtime if what executes them answered',
      'runtime',
      Object.entries(workers.unavailable),
    ),
    ...headOf('scheduler_starts_total', 'counter', 'Orders to start the scheduler of a tenant'),
    ...schedulers.map(({ tenant, starts }) => `millrace_scheduler_starts_total{tenant="${escaped(tenant)}"} ${starts}`),
    ...headOf('scheduler_failures', 'gauge', 'Failures of a scheduler in a row; 0 after a minute without one'),
    ...schedulers.map(({ tenant, failures }) => `millrace_scheduler_failures{tenant="${escaped(tenant)}"} ${failures}`),
  ];
  return `${lines.join('\n')}\n`;
}

function tally<T extends string>(names: readonly T[], value: (name: T) => number): (readonly [string, number])[] {
  return names.map((name) => [name, value(name)]);
}

function gauge(name: string, help: string, label: string, values: readonly (readonly [string, number])[]): string[] {
  return [
    ...headOf(name, 'gauge', help),
    ...values.map(([value, count]) => `millrace_${name}{${label}="${value}"} ${count}`),
  ];
}
