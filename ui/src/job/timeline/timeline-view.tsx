/** One instant of a job over time: when each task was queued, started and ended, and what the end waited for. */
import { useMemo } from 'react';
import { Answer } from '../../kit/answer.tsx';
import { Empty } from '../../kit/empty.tsx';
import { useNow } from '../../time/clock.ts';
import { InstantPicker, usePickedInstant } from '../instant-picker.tsx';
import type { JobViewProps } from '../use-job.ts';
import '../state-colours.css';
import { type Graph, useGraph } from '../use-job.ts';
import { criticalPath, type InstantRun, rowsOf } from './rows.ts';
import { makeScale } from './scale.ts';
import { TimeAxis } from './time-axis.tsx';
import { TimelineTask, timesOf } from './timeline-row.tsx';
import './timeline.css';
import { mostRuns, useInstantRuns } from './use-instant-runs.ts';

export default function TimelineView({ job }: JobViewProps) {
  return (
    <Answer of={useGraph(job.id)} what="Reading the graph">
      {(graph) => <TimelineOf job={job.id} graph={graph} />}
    </Answer>
  );
}

function TimelineOf({ job, graph }: { readonly job: string; readonly graph: Graph }) {
  const picked = usePickedInstant(job, graph.nodes.length);
  const runs = useInstantRuns(job, picked.instant);
  if (picked.instants?.length === 0 && picked.instant === undefined) {
    return (
      <Empty title="Nothing has run yet">
        <p>The runs of an instant show here, one bar for each, the moment a trigger fires.</p>
      </Empty>
    );
  }
  return (
    <section aria-label="Timeline">
      <InstantPicker picked={picked} />
      <Answer
        of={picked.instants === undefined ? { ...runs, error: runs.error ?? picked.error } : runs}
        what="Reading runs"
      >
        {(data) => {
          if (data.length === 0) return <Empty title="No runs at this instant" />;
          const props = { job, graph, runs: data };
          return data.some((run) => run.finish_datetime === null) ? (
            <LiveChart {...props} />
          ) : (
            <Chart {...props} now={0} />
          );
        }}
      </Answer>
    </section>
  );
}

interface ChartProps {
  readonly job: string;
  readonly graph: Graph;
  readonly runs: readonly InstantRun[];
  readonly now: number;
}

/** Never before what has ended already: the clock ticks once a second, and may be another than the server's. */
function LiveChart(props: Omit<ChartProps, 'now'>) {
  const tick = useNow('second');
  const latest = props.runs.reduce((most, run) => Math.max(most, Date.parse(run.finish_datetime ?? '') || 0), 0);
  return <Chart {...props} now={Math.max(tick, latest)} />;
}

function Chart({ job, graph, runs, now }: ChartProps) {
  const rows = useMemo(() => rowsOf(job, graph, runs), [job, graph, runs]);
  const critical = useMemo(() => criticalPath(graph.edges, runs), [graph, runs]);
  const scale = useMemo(() => {
    const busy = runs.map((run) => timesOf(run, now));
    return makeScale(busy.map(({ queued, end }) => ({ from: queued, to: end })));
  }, [runs, now]);
  return (
    <>
      <div className="timeline">
        <TimeAxis scale={scale} />
        <ol className="timeline-rows">
          {rows.map((row) => (
            <TimelineTask key={row.task} row={row} scale={scale} now={now} critical={critical} />
          ))}
        </ol>
      </div>
      <p className="timeline-legend">
        <span className="timeline-key" data-part="wait" /> queued <span className="timeline-key" data-part="work" /> ran{' '}
        <span className="timeline-key" data-part="critical" /> what the end waited for
        {runs.length === mostRuns ? <>; only {mostRuns.toLocaleString('en')} runs are shown</> : null}
      </p>
    </>
  );
}
