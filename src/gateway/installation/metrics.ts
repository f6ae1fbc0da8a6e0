/** Prometheus metrics: of this process from telemetry; of schedulers, hosts, launchers, couriers and conductors from the control database. */
import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import type { Telemetry } from '../../kernel/telemetry.ts';
import { claimed, handedOver, reported } from '../../runs/telemetry.ts';
import { requestAnswered } from '../routing/telemetry.ts';
import { conductorMetrics, type FlowFigures } from './conductor-metrics.ts';
import { type BusFigures, countPublished, courierMetrics } from './courier-metrics.ts';
import { launcherMetrics, type LauncherFigures } from './launcher-metrics.ts';
import { schedulerMetrics, type SchedulerRow } from './scheduler-metrics.ts';

const seconds = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60];

export interface MetricSources {
  readonly schedulers: () => Promise<readonly SchedulerRow[]>;
  readonly launcher: () => Promise<LauncherFigures>;
  readonly bus: () => Promise<BusFigures>;
  readonly flows: () => Promise<FlowFigures>;
}

export function makeMetrics(
  telemetry: Telemetry,
  { schedulers, launcher, bus, flows }: MetricSources,
): (tenantId: string | null) => Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'millrace_' });
  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name: `millrace_${name}_total`, help, labelNames, registers });
  const claimedRuns = counter('runs_claimed', 'Runs handed to workers');
  const handedOverRuns = counter('runs_handed_over', 'Runs handed to workers in the commit of a report');
  const reportsReceived = counter('runs_reported', 'Reports received');
  const applied = counter('reports_applied', 'Reports that took effect');
  const created = counter('runs_created', 'Runs created downstream of a result');
  const requests = counter('http_requests', 'HTTP requests by status', ['method', 'status']);
  const duration = new Histogram({
    name: 'millrace_http_request_seconds',
    help: 'Time to answer',
    buckets: seconds,
    registers,
  });
  claimed.on(telemetry, ({ runs }) => claimedRuns.inc(runs));
  handedOver.on(telemetry, ({ runs }) => handedOverRuns.inc(runs));
  reported.on(telemetry, (batch) => {
    reportsReceived.inc(batch.runs);
    applied.inc(batch.applied);
    created.inc(batch.created);
  });
  requestAnswered.on(telemetry, ({ method, status, ms }) => {
    requests.inc({ method, status: String(status) });
    duration.observe(ms / 1000);
  });
  const published = countPublished(telemetry);
  return async (tenantId) => {
    // this process and the launcher serve all tenants, so a key of one tenant does not see their metrics
    const isRoot = tenantId === null;
    const own = isRoot ? await registry.metrics() : '';
    // without the control database, the metrics of this process are still available
    const [figures, rows, busFigures, flowFigures] = await Promise.all([
      isRoot ? launcher().catch(() => undefined) : undefined,
      schedulers().catch(() => undefined),
      bus().catch(() => undefined),
      flows().catch(() => undefined),
    ]);
    const visible = rows?.filter((row) => isRoot || row.tenantId === tenantId);
    return [
      own,
      figures === undefined ? '' : launcherMetrics(figures),
      visible === undefined ? '' : schedulerMetrics(visible),
      busFigures === undefined ? '' : courierMetrics(busFigures, { published, schedulers: visible ?? [] }, tenantId),
      flowFigures === undefined ? '' : conductorMetrics(flowFigures, tenantId),
    ].join('');
  };
}
