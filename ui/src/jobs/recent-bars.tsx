/**
 * A job's latest instants as bars, oldest first: as high as they took long. One that went wrong has a mark below the line,
 * so that it shows without colour.
 */
import { Link } from 'wouter';
import { formatInstant, formatSpan } from '../time/format.ts';
import type { JobRow } from './use-jobs.ts';

type Recent = JobRow['recent'];

const barWidth = 5;
const gap = 2;
const plot = 18;
const height = 25;
const most = 16;
const wrong = new Set<string>(['failure', 'retry']);

export function RecentBars({ job, recent }: { readonly job: string; readonly recent: Recent }) {
  if (recent.length === 0) return <span className="muted">–</span>;
  const longest = Math.max(...recent.map(({ seconds }) => seconds ?? 0), 0.001);
  return (
    <Link href={`/jobs/${job}/grid`} className="recent" aria-label={spoken(recent)}>
      <svg width={most * (barWidth + gap)} height={height} aria-hidden="true">
        {recent.map(({ instant, state, seconds }, i) => {
          const tall = 3 + (plot - 3) * ((seconds ?? longest / 2) / longest);
          const x = (most - recent.length + i) * (barWidth + gap);
          return (
            <g key={instant} className="recent-bar" data-state={state}>
              <title>{`${formatInstant(instant)} ${state}${seconds === null ? '' : `, ${formatSpan(seconds * 1000)}`}`}</title>
              <rect x={x} y={plot - tall} width={barWidth} height={tall} rx={1} />
              {wrong.has(state) ? <path d={`M${x} ${plot + 2}h${barWidth}l${-barWidth / 2} 4Z`} /> : null}
            </g>
          );
        })}
      </svg>
    </Link>
  );
}

/** `latest 16 instants: 14 success, 2 failure`. */
function spoken(recent: Recent): string {
  const counts = new Map<string, number>();
  for (const { state } of recent) counts.set(state, (counts.get(state) ?? 0) + 1);
  return `latest ${recent.length} instants: ${[...counts].map(([state, n]) => `${n} ${state}`).join(', ')}`;
}
