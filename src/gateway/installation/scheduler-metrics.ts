/** Metrics of schedulers in the text format of Prometheus. They run in other processes, which store the counters in their rows. */
import { latenessBounds, type SchedulerTally } from '../../contract/tally.ts';
import { escaped, headOf, histogram } from './metric-lines.ts';

export interface SchedulerRow {
  readonly tenantId: string;
  readonly tenant: string;
  readonly queued_triggers: number;
  readonly tally: SchedulerTally | null;
}

type Value = (row: SchedulerRow) => number;

const families: readonly (readonly [name: string, type: 'gauge' | 'counter', help: string, value: Value])[] = [
  ['triggers_queued', 'gauge', 'Triggers that wait for their next instant', (row) => row.queued_triggers],
  ['trigger_firings_total', 'counter', 'Instants fired when they were due', ({ tally }) => tally?.fired ?? 0],
  ['catchup_firings_total', 'counter', 'Missed instants fired', ({ tally }) => tally?.caught_up ?? 0],
  ['runs_triggered_total', 'counter', 'Runs created by firing triggers', ({ tally }) => tally?.runs ?? 0],
  ['retries_total', 'counter', 'Runs queued again after a failure', ({ tally }) => tally?.retries ?? 0],
  [
    'bus_dropped_events_total',
    'counter',
    'Events dropped before they were delivered',
    ({ tally }) => tally?.dropped ?? 0,
  ],
  ['leases_lost_total', 'counter', 'Runs taken back from lost workers', ({ tally }) => tally?.leases_lost ?? 0],
];

export function schedulerMetrics(rows: readonly SchedulerRow[]): string {
  const plain = families.flatMap(([name, type, help, value]) => [
    ...headOf(name, type, help),
    ...rows.map((row) => `millrace_${name}{tenant="${escaped(row.tenant)}"} ${value(row)}`),
  ]);
  const name = 'trigger_lateness_seconds';
  const head = headOf(name, 'histogram', 'From the due time of a trigger to the commit of its firing');
  const lines = rows.flatMap(({ tenant, tally }) =>
    histogram(name, `tenant="${escaped(tenant)}"`, latenessBounds, tally?.lateness ?? { buckets: [], seconds: 0 }),
  );
  return `${[...plain, ...head, ...lines].join('\n')}\n`;
}
