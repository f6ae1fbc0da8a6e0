/** One bar for each instant: the duration of all tasks together, and the share of the chosen task. */
import type { MouseEvent } from 'react';
import { useLocation } from 'wouter';
import { formatInstant, formatSpan } from '../../time/format.ts';
import { ticksFor } from '../../time/ticks.ts';
import { instantHref } from '../use-selection.ts';
import type { Durations, TaskStats } from './stats.ts';

interface Props {
  readonly job: string;
  readonly durations: Durations;
  /** Undefined: all tasks together. */
  readonly task: TaskStats | undefined;
}

export function DurationChart({ job, durations: { instants, totals }, task }: Props) {
  const [, navigate] = useLocation();
  const values = instants.map((_, i) => (task === undefined ? totals[i] : task.series[i]) ?? 0);
  const ticks = ticksFor(Math.max(...values) * 1_000, 4);
  const most = Math.max(1, ticks.at(-1) ?? 1);
  const what = task === undefined ? 'All tasks together' : task.name;
  const open = (event: MouseEvent): void => {
    const at =
      event.target instanceof Element ? event.target.closest<HTMLElement>('[data-at]')?.dataset['at'] : undefined;
    if (at !== undefined) navigate(instantHref(job, 'timeline', at));
  };
  return (
    <figure className="duration-figure">
      <figcaption>{what}, by instant</figcaption>
      {/* the table below has the figures of each bar, with links */}
      <div className="duration-chart" aria-hidden="true" onClick={open}>
        {ticks.map((ms) => (
          <span key={ms} className="duration-tick" style={{ bottom: `${(ms / most) * 100}%` }}>
            {ms === 0 ? '0' : formatSpan(ms)}
          </span>
        ))}
        <div className="duration-bars">
          {instants.map((instant, i) => {
            const ms = (values[i] ?? 0) * 1_000;
            return (
              <div
                key={instant}
                className="duration-slot"
                data-at={instant}
                title={`${formatInstant(instant)}: ${formatSpan(ms)}`}
              >
                <div className="duration-bar" style={{ height: `${(ms / most) * 100}%` }} />
              </div>
            );
          })}
        </div>
      </div>
      <Ends instants={instants} />
    </figure>
  );
}

function Ends({ instants }: { readonly instants: readonly string[] }) {
  const [first, last] = [instants[0], instants.at(-1)];
  if (first === undefined || last === undefined) return null;
  return (
    <p className="duration-ends" aria-hidden="true">
      <span>{formatInstant(first)}</span>
      {first === last ? null : <span>{formatInstant(last)}</span>}
    </p>
  );
}
