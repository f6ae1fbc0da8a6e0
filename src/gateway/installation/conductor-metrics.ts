/**
 * Metrics of flows in the text format of Prometheus. Conductors store their counters in their rows, also that of this process, and
 * schedulers say where messages wait. Counters carry the conductor, because they begin anew with it.
 */
import { type FlowTally, timerLatenessBounds } from '../../contract/conductor-tally.ts';
import { type ConductorTallyRow, conductorTallies, tenantsWithInbox } from '../../control/conductor-queries.ts';
import { listTenants } from '../../control/queries.ts';
import type { Db } from '../../kernel/sql.ts';
import { escaped, headOf, histogram } from './metric-lines.ts';

export interface FlowFigures {
  readonly conductors: readonly ConductorTallyRow[];
  /** Tenants with messages that no commit has consumed. */
  readonly waiting: readonly string[];
  /** Names by id. */
  readonly tenants: ReadonlyMap<string, string>;
}

export async function readFlowFigures(db: Db): Promise<FlowFigures> {
  const [conductors, waiting, tenants] = await Promise.all([
    conductorTallies(db),
    tenantsWithInbox(db),
    listTenants(db),
  ]);
  return { conductors, waiting, tenants: new Map(tenants.map(({ id, name }) => [id, name])) };
}

const counters: readonly (readonly [name: string, help: string, value: (tally: FlowTally) => number])[] = [
  ['flow_commits_total', 'Executions committed, each commit once', (tally) => tally.commits],
  ['flow_messages_total', 'Messages to executions committed', (tally) => tally.messages],
  ['flow_puts_lost_total', 'Executions that another commit had changed meanwhile', (tally) => tally.lost],
  ['flow_calls_total', 'Calls of hosted functions', (tally) => tally.calls],
];

const latenessHelp = 'From the time at which a timer is due to the commit of its effect';

/** The metrics of all tenants (null), or of one. */
export function conductorMetrics({ conductors, waiting, tenants }: FlowFigures, tenantId: string | null): string {
  const seen = new Map([...tenants].filter(([id]) => tenantId === null || id === tenantId));
  const labelsOf = (tenant: string, conductor: string): string =>
    `tenant="${escaped(seen.get(tenant) ?? '')}",conductor="${conductor}"`;
  const parts = conductors.flatMap(({ id, tally }) =>
    Object.entries(tally?.tenants ?? {})
      .filter(([tenant]) => seen.has(tenant))
      .map(([tenant, counts]) => ({ labels: labelsOf(tenant, id), tally: counts })),
  );
  const inMemory = conductors.flatMap(({ id, tally }) =>
    Object.entries(tally?.executions ?? {})
      .filter(([tenant]) => seen.has(tenant))
      .flatMap(([tenant, phases]) =>
        Object.entries(phases).map(
          ([phase, count]) => `millrace_flow_executions{${labelsOf(tenant, id)},state="${escaped(phase)}"} ${count}`,
        ),
      ),
  );
  const stuck = new Set(waiting);
  const lines = [
    ...counters.flatMap(([name, help, value]) => [
      ...headOf(name, 'counter', help),
      ...parts.map(({ labels, tally }) => `millrace_${name}{${labels}} ${value(tally)}`),
    ]),
    ...headOf('timer_lateness_seconds', 'histogram', latenessHelp),
    ...parts.flatMap(({ labels, tally }) =>
      histogram('timer_lateness_seconds', labels, timerLatenessBounds, tally.lateness),
    ),
    ...headOf('flow_executions', 'gauge', 'Executions in the memory of a conductor, by what they do'),
    ...inMemory,
    ...headOf('flow_inbox_waiting', 'gauge', 'Whether messages to executions wait (1) or not (0)'),
    ...[...seen].map(([id, name]) => `millrace_flow_inbox_waiting{tenant="${escaped(name)}"} ${stuck.has(id) ? 1 : 0}`),
    ...(tenantId === null
      ? [...headOf('conductors', 'gauge', 'Conductors alive'), `millrace_conductors ${conductors.length}`]
      : []),
  ];
  return `${lines.join('\n')}\n`;
}
