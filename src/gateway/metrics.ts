/** Prometheus metrics: of this process by telemetry, nothing in the domain knows of it; of schedulers by their rows. */
import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import type { Telemetry } from '../kernel/telemetry.ts';
import { schedulerMetrics, type SchedulerRow } from './scheduler-metrics.ts';

const seconds = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60];

export function makeMetrics(
  telemetry: Telemetry,
  schedulers: () => Promise<readonly SchedulerRow[]>,
): (tenantId: string | null) => Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'millrace_' });
  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name: `millrace_${name}_total`, help, labelNames, registers });
  const claimed = counter('runs_claimed', 'Runs handed to workers');
  const reported = counter('runs_reported', 'Reports received');
  const applied = counter('reports_applied', 'Reports that took effect');
  const created = counter('runs_created', 'Runs created downstream of a result');
  const requests = counter('http_requests', 'HTTP requests by status', ['method', 'status']);
  const duration = new Histogram({
    name: 'millrace_http_request_seconds',
    help: 'Time to answer',
    buckets: seconds,
    registers,
  });
  telemetry.on('claimed', ({ runs }) => claimed.inc(runs));
  telemetry.on('reported', (batch) => {
    reported.inc(batch.runs);
    applied.inc(batch.applied);
    created.inc(batch.created);
  });
  telemetry.on('request', ({ method, status, ms }) => {
    requests.inc({ method, status: String(status) });
    duration.observe(ms / 1000);
  });
  return async (tenantId) => {
    // what this process does is of all tenants together: less one's own, of the others
    const own = tenantId === null ? await registry.metrics() : '';
    // without its database this process still has something to tell
    const rows = await schedulers().catch(() => undefined);
    const shown = rows?.filter((row) => tenantId === null || row.tenantId === tenantId);
    return shown === undefined ? own : `${own}${schedulerMetrics(shown)}`;
  };
}
