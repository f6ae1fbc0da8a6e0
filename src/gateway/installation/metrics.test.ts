import { expect, it } from 'vitest';
import { makeTelemetry } from '../../kernel/telemetry.ts';
import { claimed, handedOver } from '../../runs/telemetry.ts';
import { makeMetrics } from './metrics.ts';

const lateness = { buckets: [2, 1, 0, 0, 0, 0, 0, 0, 0, 1], seconds: 61.5 };
const tally = { fired: 4, caught_up: 10, runs: 14, retries: 2, leases_lost: 1, published: 6, dropped: 8, lateness };

const flowTally = { commits: 9, messages: 12, lost: 1, calls: 6, lateness: { buckets: [3, 1], seconds: 0.5 } };

const figures = {
  tenants: { STARTED: 2 },
  notRunning: {},
  schedulers: [{ tenant: 'default', starts: 1, failures: 0 }],
  hosts: { alive: 1, leaving: 0, silent: 0 },
  launchers: { active: 1, standby: 0 },
  slots: { limit: 64, taken: 3, waiting: 0 },
  workers: { serving: { none: 1 }, unavailable: {} },
};

it('metrics include this process, and the schedulers of all processes per tenant', async () => {
  const telemetry = makeTelemetry(() => {});
  const rows = [
    { tenantId: '1', tenant: 'default', queued_triggers: 7, tally },
    { tenantId: '2', tenant: 'a "b"\\', queued_triggers: 0, tally: null },
  ];
  const metrics = makeMetrics(telemetry, {
    schedulers: async () => rows,
    launcher: async () => figures,
    bus: async () => ({ couriers: [], tenants: new Map() }),
    flows: async () => ({
      conductors: [{ id: 'c1', tally: { tenants: { 1: flowTally }, executions: { 1: { resting: 5, away: 2 } } } }],
      waiting: ['1'],
      tenants: new Map([['1', 'default']]),
    }),
  });
  claimed.emit(telemetry, { runs: 3, polls: 1 });
  handedOver.emit(telemetry, { runs: 2 });
  const lines = (await metrics(null)).split('\n');
  for (const line of [
    'millrace_flow_messages_total{tenant="default",conductor="c1"} 12',
    'millrace_timer_lateness_seconds_bucket{tenant="default",conductor="c1",le="0.01"} 4',
    'millrace_flow_executions{tenant="default",conductor="c1",state="away"} 2',
    'millrace_flow_inbox_waiting{tenant="default"} 1',
    'millrace_conductors 1',
    'millrace_runs_claimed_total 3',
    'millrace_runs_handed_over_total 2',
    'millrace_tenants{state="STARTED"} 2',
    '# TYPE millrace_trigger_firings_total counter',
    'millrace_triggers_queued{tenant="default"} 7',
    'millrace_trigger_firings_total{tenant="default"} 4',
    'millrace_catchup_firings_total{tenant="default"} 10',
    'millrace_runs_triggered_total{tenant="default"} 14',
    'millrace_retries_total{tenant="default"} 2',
    'millrace_leases_lost_total{tenant="default"} 1',
    'millrace_bus_dropped_events_total{tenant="default"} 8',
    'millrace_bus_published_events_total{tenant="default",through="sql"} 6',
    'millrace_retries_total{tenant="a \\"b\\"\\\\"} 0',
    '# TYPE millrace_trigger_lateness_seconds histogram',
    'millrace_trigger_lateness_seconds_bucket{tenant="default",le="0.005"} 2',
    'millrace_trigger_lateness_seconds_bucket{tenant="default",le="0.02"} 3',
    'millrace_trigger_lateness_seconds_bucket{tenant="default",le="60"} 3',
    'millrace_trigger_lateness_seconds_bucket{tenant="default",le="+Inf"} 4',
    'millrace_trigger_lateness_seconds_sum{tenant="default"} 61.5',
    'millrace_trigger_lateness_seconds_count{tenant="default"} 4',
  ])
    expect(lines).toContain(line);
  // in the text format of Prometheus
  const form = /^[a-z_]+\{[a-z_]+="(?:[^"\\]|\\.)*"(,(le|through|conductor|state)="[^"]+")*\} [\d.]+$/;
  expect(lines.filter((line) => line.includes('tenant=') && !form.test(line))).toEqual([]);
  // a tenant's key sees neither metrics of other tenants nor those of this process
  const ofOne = (await metrics('1')).split('\n');
  expect(
    ofOne.filter((line) =>
      /^millrace_(runs_claimed|http_request|process|tenants|slots|hosts|launchers|scheduler_)/.test(line),
    ),
  ).toEqual([]);
  const own = ofOne.filter((line) => line.includes('tenant='));
  expect(own.length).toBeGreaterThan(5);
  expect(own.filter((line) => !line.includes('tenant="default"'))).toEqual([]);
});

it('metrics of this process are available while the control database is unreachable', async () => {
  const metrics = makeMetrics(
    makeTelemetry(() => {}),
    {
      schedulers: () => Promise.reject(new Error('gone')),
      launcher: () => Promise.reject(new Error('gone')),
      bus: () => Promise.reject(new Error('gone')),
      flows: () => Promise.reject(new Error('gone')),
    },
  );
  const text = await metrics(null);
  expect(text).toContain('millrace_runs_claimed_total');
  expect(text).not.toContain('tenant=');
});
