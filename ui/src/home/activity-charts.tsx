/** Charts of runs per minute by result, of the lateness of triggers, and of how long runs waited for a worker. */
import { useMemo } from 'react';
import { Answer } from '../kit/answer.tsx';
import '../kit/chart/chart.css';
import { type Series, TimeChart } from '../kit/chart/time-chart.tsx';
import { formatSpan } from '../time/format.ts';
import { type Activity, useActivity } from './use-home.ts';

const ends = ['success', 'failure', 'timeout', 'error', 'cancelled'] as const;

export function ActivityCharts({ minutes }: { readonly minutes: number }) {
  return (
    <Answer of={useActivity(minutes)} what="Reading how it went">
      {(activity) => <Charts activity={activity} />}
    </Answer>
  );
}

function Charts({ activity: { step, items } }: { readonly activity: Activity }) {
  const times = useMemo(() => items.map(({ at }) => at), [items]);
  const runs = useMemo(
    () => ends.map((end): Series => ({ name: end, colour: end, values: items.map((item) => item[end] / step) })),
    [items, step],
  );
  const lateness = useMemo(
    (): Series[] => [
      { name: 'worst', colour: 'failure', values: items.map((item) => item.late_worst) },
      { name: 'mean', colour: 'running', values: items.map((item) => item.late_mean) },
    ],
    [items],
  );
  const waits = useMemo(
    (): Series[] => [
      { name: 'worst', colour: 'failure', values: items.map((item) => item.wait_worst) },
      { name: 'mean', colour: 'running', values: items.map((item) => item.wait_mean) },
    ],
    [items],
  );
  const total = (end: (typeof ends)[number]): number => items.reduce((sum, item) => sum + item[end], 0);
  const failed = total('failure') + total('timeout') + total('error');
  const worst = (key: 'late_worst' | 'wait_worst'): string =>
    `worst ${span(Math.max(0, ...items.map((item) => item[key] ?? 0)))}`;
  return (
    <div className="home-chart-row">
      <TimeChart
        title="Runs per minute"
        kind="bars"
        times={times}
        series={runs}
        format={rate}
        summary={`${total('success').toLocaleString('en')} succeeded, ${failed.toLocaleString('en')} failed`}
      />
      <TimeChart
        title="Lateness of triggers"
        kind="lines"
        times={times}
        series={lateness}
        format={span}
        summary={items.some(({ fired }) => fired > 0) ? worst('late_worst') : 'no trigger fired'}
      />
      <TimeChart
        title="Wait for a place"
        kind="lines"
        times={times}
        series={waits}
        format={span}
        summary={items.some(({ wait_mean: wait }) => wait !== null) ? worst('wait_worst') : 'nothing started'}
      />
    </div>
  );
}

/** As precise as needed for two ticks to differ. */
function span(ms: number): string {
  return ms < 10 && !Number.isInteger(ms) ? `${ms.toFixed(1)}ms` : formatSpan(ms);
}

function rate(value: number): string {
  if (value >= 10_000) return `${Math.round(value / 1_000)}k`;
  return value >= 10 || Number.isInteger(value) ? Math.round(value).toLocaleString('en') : value.toFixed(1);
}
