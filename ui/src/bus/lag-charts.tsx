/** Charts of lag over time, of one subscriber, of the subscribers of a topic or of all together: the events that wait, and the age of the oldest. */
import { useMemo } from 'react';
import { Answer } from '../kit/answer.tsx';
import '../kit/chart/chart.css';
import { type Series, TimeChart } from '../kit/chart/time-chart.tsx';
import { formatSpan } from '../time/format.ts';
import { formatRate } from './format-rate.ts';
import { type BusActivity, useBusActivity } from './use-bus.ts';

interface Props {
  readonly minutes: number;
  readonly subscriber?: string;
  /** The lag of its subscribers. */
  readonly topic?: string;
}

export function LagCharts({ minutes, subscriber, topic }: Props) {
  const of = { ...(subscriber === undefined ? {} : { subscriber }), ...(topic === undefined ? {} : { topic }) };
  const activity = useBusActivity(minutes, of);
  return (
    <Answer of={activity} what="Reading lag">
      {(data) => <Charts activity={data} />}
    </Answer>
  );
}

function Charts({ activity: { items } }: { readonly activity: BusActivity }) {
  const times = useMemo(() => items.map(({ at }) => at), [items]);
  const queued = useMemo(
    (): Series[] => [{ name: 'waiting', colour: 'retry', values: items.map((item) => item.queued) }],
    [items],
  );
  const oldest = useMemo(
    (): Series[] => [{ name: 'oldest', colour: 'retry', values: items.map((item) => item.oldest_age ?? 0) }],
    [items],
  );
  const now = items.at(-1);
  return (
    <div className="bus-charts">
      <TimeChart
        title="Events waiting"
        kind="lines"
        times={times}
        series={queued}
        format={formatRate}
        summary={`${(now?.queued ?? 0).toLocaleString('en')} now`}
      />
      <TimeChart
        title="Age of the oldest event that waits"
        kind="lines"
        times={times}
        series={oldest}
        format={formatSpan}
        summary={now === undefined || now.oldest_age === null ? 'nothing waits' : `${formatSpan(now.oldest_age)} now`}
      />
    </div>
  );
}
