/** One task of the timeline: a bar for each attempt, thin while it was queued and full while it ran. */
import { memo } from 'react';
import { Link } from 'wouter';
import { Shape } from '../grid/cells.tsx';
import { formatSpan } from '../../time/format.ts';
import type { InstantRun, TimelineRow } from './rows.ts';
import type { Scale } from './scale.ts';

interface Props {
  readonly row: TimelineRow;
  readonly scale: Scale;
  /** The end of the bars of unfinished runs. */
  readonly now: number;
  readonly critical: ReadonlySet<string>;
}

export const TimelineTask = memo(function TimelineTask({ row, scale, now, critical }: Props) {
  const latest = row.runs.at(-1);
  return (
    <li className="timeline-row">
      <span className="timeline-name state-ink" data-state={latest?.state} title={row.name}>
        {latest === undefined ? null : <Shape state={latest.state} />}
        <span>{row.name}</span>
      </span>
      <span className="timeline-track">
        {latest === undefined ? <span className="timeline-none">no run</span> : null}
        {row.runs.map((run) => (
          <Bar key={run.task_run_id} run={run} scale={scale} now={now} critical={critical.has(run.task_run_id)} />
        ))}
      </span>
    </li>
  );
});

/** Its three times. A time that has not come yet is replaced by now. */
export function timesOf(run: InstantRun, now: number) {
  const queued = Date.parse(run.queued_datetime);
  const end = run.finish_datetime === null ? Math.max(now, queued) : Date.parse(run.finish_datetime);
  const started = run.started_datetime === null ? end : Date.parse(run.started_datetime);
  return { queued, started: Math.min(started, end), end };
}

function inWords(run: InstantRun, { queued, started, end }: ReturnType<typeof timesOf>): string {
  const attempt = run.attempt > 1 ? `, attempt ${run.attempt}` : '';
  const took = run.started_datetime === null ? '' : `, ran ${formatSpan(end - started)}`;
  return `${run.name}${attempt}, ${run.state}, queued ${formatSpan(started - queued)}${took}`;
}

interface BarProps extends Omit<Props, 'row' | 'critical'> {
  readonly run: InstantRun;
  readonly critical: boolean;
}

function Bar({ run, scale, now, critical }: BarProps) {
  const times = timesOf(run, now);
  const [left, middle, right] = [scale.place(times.queued), scale.place(times.started), scale.place(times.end)];
  const words = inWords(run, times);
  const waited = right === left ? 0 : (middle - left) / (right - left);
  return (
    <Link
      href={`/runs/${run.task_run_id}`}
      className="timeline-bar state-ink"
      data-state={run.state}
      data-critical={critical ? '' : undefined}
      aria-label={critical ? `${words}, on the critical path` : words}
      title={words}
      style={{ left: `${left * 100}%`, width: `${(right - left) * 100}%` }}
    >
      <span className="timeline-wait" style={{ width: `${waited * 100}%` }} />
      <span className="timeline-work" />
    </Link>
  );
}
