/** Durations of a job's tasks at its latest instants. The address holds the number of instants and the task. */
import { useMemo } from 'react';
import { Link } from 'wouter';
import { Answer } from '../../kit/answer.tsx';
import { Choice } from '../../kit/choice.tsx';
import { Empty } from '../../kit/empty.tsx';
import { useUrlState } from '../../kit/url-state.ts';
import { formatSpan } from '../../time/format.ts';
import { Instant } from '../../time/times.tsx';
import type { JobViewProps } from '../use-job.ts';
import { useGraph } from '../use-job.ts';
import { instantHref } from '../use-selection.ts';
import { DurationChart } from './duration-chart.tsx';
import { DurationTable } from './duration-table.tsx';
import './durations.css';
import { type Duration, type Durations, gather, type TaskStats } from './stats.ts';
import { useDurations } from './use-durations.ts';

const standard = '30';
const choices = [standard, '100', '300'].map((value) => ({ value, label: `Latest ${value}` }));
/** With many tasks, fewer instants are read. */
const mostRuns = 6_000;

export default function DurationsView({ job }: JobViewProps) {
  return (
    <Answer of={useGraph(job.id)} what="Reading the graph">
      {({ nodes }) => <DurationsOf job={job.id} tasks={nodes.length} />}
    </Answer>
  );
}

function DurationsOf({ job, tasks }: { readonly job: string; readonly tasks: number }) {
  const [shown, show] = useUrlState('n', standard);
  const asked = choices.some(({ value }) => value === shown) ? Number(shown) : Number(standard);
  const limit = Math.max(1, Math.min(asked, Math.floor(mostRuns / Math.max(1, tasks))));
  return (
    <section aria-label="Durations">
      <div className="bar">
        <Choice label="How many instants" options={choices} value={shown} change={show} />
        {limit < asked ? <span className="muted">{limit} instants, because the job has many tasks</span> : null}
      </div>
      <Answer of={useDurations(job, limit)} what="Reading durations">
        {({ duration }) => (duration.length === 0 ? <NoDurations /> : <Shown job={job} rows={duration} />)}
      </Answer>
    </section>
  );
}

function Shown({ job, rows }: { readonly job: string; readonly rows: readonly Duration[] }) {
  const [chosen, choose] = useUrlState('of');
  const durations = useMemo(() => gather(rows), [rows]);
  const task = durations.tasks.find(({ name }) => name === chosen);
  return (
    <>
      <DurationChart job={job} durations={durations} task={task} />
      <DurationTable tasks={durations.tasks} chosen={chosen} choose={choose} />
      <ByInstant job={job} durations={durations} task={task} />
    </>
  );
}

interface ByInstantProps {
  readonly job: string;
  readonly durations: Durations;
  readonly task: TaskStats | undefined;
}

function ByInstant({ job, durations: { instants, totals }, task }: ByInstantProps) {
  return (
    <details className="duration-instants">
      <summary>{task?.name ?? 'All tasks together'} at each instant</summary>
      <ul>
        {instants.map((instant, i) => {
          const seconds = task === undefined ? totals[i] : task.series[i];
          return (
            <li key={instant}>
              <Link href={instantHref(job, 'timeline', instant)}>
                <Instant at={instant} />
              </Link>
              <span className="muted">{seconds === undefined ? 'no run' : formatSpan(seconds * 1_000)}</span>
            </li>
          );
        })}
      </ul>
    </details>
  );
}

function NoDurations() {
  return (
    <Empty title="Nothing has ended yet">
      <p>How long tasks take shows here once a run of one has ended.</p>
    </Empty>
  );
}
