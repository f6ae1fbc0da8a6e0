/** Charts of the bus over time: events in and out, failed attempts, and how long events take from acceptance to delivery. */
import { useMemo } from 'react';
import { Answer } from '../kit/answer.tsx';
import '../kit/chart/chart.css';
import { type Series, TimeChart } from '../kit/chart/time-chart.tsx';
import { formatSpan } from '../time/format.ts';
import { formatRate } from './format-rate.ts';
import { type BusActivity, useBusActivity } from './use-bus.ts';

interface Props {
  readonly minutes: number;
  /** Only this subscriber; without it, the whole bus. */
  readonly subscriber?: string;
  readonly topic?: string;
}

export function BusCharts({ minutes, subscriber, topic }: Props) {
  const of = { ...(subscriber === undefined ? {} : { subscriber }), ...(topic === undefined ? {} : { topic }) };
  const activity = useBusActivity(minutes, of);
  return (
    <Answer of={activity} what="Reading rates">
      {(data) => <Charts activity={data} isOfOne={subscriber !== undefined} />}
    </Answer>
  );
}

function Charts({ activity: { step, items }, isOfOne }: { readonly activity: BusActivity; readonly isOfOne: boolean }) {
  const times = useMemo(() => items.map(({ at }) => at), [items]);
  const published = useMemo(
    (): Series[] => [{ name: 'published', colour: 'running', values: items.map((item) => item.published / step) }],
    [items, step],
  );
  const delivered = useMemo(
    (): Series[] => [
      { name: 'delivered', colour: 'success', values: items.map((item) => item.delivered / step) },
      { name: 'failed attempts', colour: 'failure', values: items.map((item) => item.failed / step) },
    ],
    [items, step],
  );
  const latency = useMemo(
    (): Series[] => [
      { name: 'worst', colour: 'failure', values: items.map((item) => item.latency_worst) },
      { name: 'mean', colour: 'running', values: items.map((item) => item.latency_mean) },
    ],
    [items],
  );
  const sum = (key: 'published' | 'delivered' | 'failed'): string =>
    items.reduce((total, item) => total + item[key], 0).toLocaleString('en');
  const worst = Math.max(0, ...items.map((item) => item.latency_worst ?? 0));
  return (
    <div className="bus-charts">
      {isOfOne ? null : (
        <TimeChart
          title="Events published per minute"
          kind="bars"
          times={times}
          series={published}
          format={formatRate}
          summary={`${sum('published')} in all`}
        />
      )}
      <TimeChart
        title="Events delivered per minute"
        kind="bars"
        times={times}
        series={delivered}
        format={formatRate}
        summary={`${sum('delivered')}, ${sum('failed')} failed`}
      />
      <TimeChart
        title="From acceptance to delivery"
        kind="lines"
        times={times}
        series={latency}
        format={formatSpan}
        summary={worst === 0 ? 'nothing delivered' : `worst ${formatSpan(worst)}`}
      />
    </div>
  );
}
