/**
 * Metrics of the event bus in the text format of Prometheus. Couriers store their counters in their rows; the number of
 * published events is that of this process. Counters carry the courier, because they begin anew with it.
 */
import { eventsPublished } from '../../bus/telemetry.ts';
import { type BusTally, deliveryBounds, latencyBounds, maxShownSubscribers } from '../../contract/courier-tally.ts';
import { courierTallies, type TallyRow } from '../../control/courier-queries.ts';
import { listTenants } from '../../control/queries.ts';
import type { Db } from '../../kernel/sql.ts';
import type { Telemetry } from '../../kernel/telemetry.ts';
import { escaped, headOf, histogram } from './metric-lines.ts';
import type { SchedulerRow } from './scheduler-metrics.ts';

export interface BusFigures {
  readonly couriers: readonly TallyRow[];
  /** Names by id. */
  readonly tenants: ReadonlyMap<string, string>;
}

export async function readBusFigures(db: Db): Promise<BusFigures> {
  const [couriers, tenants] = await Promise.all([courierTallies(db), listTenants(db)]);
  return { couriers, tenants: new Map(tenants.map(({ id, name }) => [id, name])) };
}

/** Counts the events that this process has accepted, by tenant. */
export function countPublished(telemetry: Telemetry): ReadonlyMap<string, number> {
  const published = new Map<string, number>();
  eventsPublished.on(telemetry, ({ tenant, events }) => published.set(tenant, (published.get(tenant) ?? 0) + events));
  return published;
}

/** Who published: this process, and schedulers that copy what SQL has published. */
interface Publications {
  readonly published: ReadonlyMap<string, number>;
  readonly schedulers: readonly SchedulerRow[];
}

interface Part {
  readonly labels: string;
  readonly tally: BusTally;
}

type Standing = NonNullable<TallyRow['tally']>['standings'][string] & { readonly tenant: string };

/** The metrics of all tenants (null), or of one. */
export function courierMetrics(
  { couriers, tenants }: BusFigures,
  { published, schedulers }: Publications,
  tenantId: string | null,
): string {
  const seen = new Map([...tenants].filter(([id]) => tenantId === null || id === tenantId));
  const labelOf = (id: string): string => `tenant="${escaped(seen.get(id) ?? '')}"`;
  const parts = couriers.flatMap(({ id, tally }) =>
    Object.entries(tally?.tenants ?? {})
      .filter(([tenant]) => seen.has(tenant))
      .map(([tenant, counts]): Part => ({ labels: `${labelOf(tenant)},courier="${id}"`, tally: counts })),
  );
  const accepted = [...published].filter(([id]) => seen.has(id));
  const lines = [
    ...headOf('bus_published_events_total', 'counter', 'Events accepted by this process'),
    ...accepted.map(([id, count]) => `millrace_bus_published_events_total{${labelOf(id)}} ${count}`),
    ...schedulers.flatMap(({ tenant, tally }) => {
      const count = tally?.published ?? 0;
      if (count === 0) return [];
      return [`millrace_bus_published_events_total{tenant="${escaped(tenant)}",through="sql"} ${count}`];
    }),
    ...counterLines(parts),
    ...histogramLines('bus_delivery_seconds', 'From sending a batch to its answer', deliveryBounds, parts, 'delivery'),
    ...histogramLines('bus_latency_seconds', 'From accepting an event to its 2xx', latencyBounds, parts, 'latency'),
    ...standingLines(newestStandings(couriers, seen)),
    ...(tenantId === null
      ? [...headOf('couriers', 'gauge', 'Couriers alive'), `millrace_couriers ${couriers.length}`]
      : []),
  ];
  return `${lines.join('\n')}\n`;
}

const counters: readonly (readonly [name: string, help: string, value: (tally: BusTally) => number])[] = [
  ['bus_delivered_events_total', 'Events delivered', (tally) => tally.delivered],
  ['bus_dead_letters_total', 'Batches given up', (tally) => tally.dead_letters],
  ['errands_scrubbed_total', 'Errands taken back from lost couriers', (tally) => tally.scrubbed],
];

function counterLines(parts: readonly Part[]): string[] {
  return [
    ...counters.flatMap(([name, help, value]) => [
      ...headOf(name, 'counter', help),
      ...parts.map(({ labels, tally }) => `millrace_${name}{${labels}} ${value(tally)}`),
    ]),
    ...headOf('bus_deliveries_total', 'counter', 'Batches sent, by the class of the answer or the code of the failure'),
    ...parts.flatMap(({ labels, tally }) =>
      Object.entries(tally.deliveries).map(
        ([status, count]) => `millrace_bus_deliveries_total{${labels},status="${escaped(status)}"} ${count}`,
      ),
    ),
  ];
}

function histogramLines(
  name: string,
  help: string,
  bounds: readonly number[],
  parts: readonly Part[],
  field: 'delivery' | 'latency',
): string[] {
  const lines = parts.flatMap(({ labels, tally }) => histogram(name, labels, bounds, tally[field]));
  return [...headOf(name, 'histogram', help), ...lines];
}

/** Several couriers serve a tenant: the last of them to look at it knows best. */
function newestStandings(couriers: readonly TallyRow[], tenants: ReadonlyMap<string, string>): Standing[] {
  const newest = new Map<string, Standing>();
  for (const { tally } of couriers) {
    for (const [id, standing] of Object.entries(tally?.standings ?? {})) {
      const tenant = tenants.get(id);
      if (tenant !== undefined && standing.at > (newest.get(id)?.at ?? 0)) newest.set(id, { ...standing, tenant });
    }
  }
  return [...newest.values()];
}

function standingLines(standings: readonly Standing[]): string[] {
  const subscribers = standings
    .flatMap(({ tenant, subscribers: some }) => some.map((each) => ({ ...each, tenant })))
    .toSorted((a, b) => b.queued - a.queued)
    .slice(0, maxShownSubscribers);
  const gauge = (name: string, help: string, value: (each: (typeof subscribers)[number]) => number): string[] => [
    ...headOf(name, 'gauge', help),
    ...subscribers.map(
      (each) => `millrace_${name}{tenant="${escaped(each.tenant)}",subscriber="${escaped(each.name)}"} ${value(each)}`,
    ),
  ];
  return [
    ...gauge('bus_queued_events', 'Events that wait for a subscriber; those with the most lag', (each) => each.queued),
    ...gauge('bus_oldest_seconds', 'The age of the oldest event that waits', (each) => (each.oldestMs ?? 0) / 1_000),
    ...gauge('bus_health', 'The health of a subscriber, 0 to 100', (each) => each.health),
    ...headOf('errands', 'gauge', 'Errands by queue and state'),
    ...standings.flatMap(({ tenant, errands }) =>
      Object.entries(errands).flatMap(([queue, states]) =>
        Object.entries(states).map(
          ([state, n]) =>
            `millrace_errands{tenant="${escaped(tenant)}",queue="${escaped(queue)}",state="${escaped(state)}"} ${n}`,
        ),
      ),
    ),
  ];
}
