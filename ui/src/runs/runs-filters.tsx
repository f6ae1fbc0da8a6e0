/** The filters that a link has set on a list of runs, with buttons to remove them. */
import type { ReactNode } from 'react';
import { useJob } from '../job/use-job.ts';
import { Instant } from '../time/times.tsx';

interface Props {
  readonly job: string | undefined;
  readonly instant: string | undefined;
  readonly drop: (name: 'job' | 'instant') => void;
}

export function RunsFilters({ job, instant, drop }: Props) {
  return (
    <div className="filters">
      {job === undefined ? null : (
        <Filter label="job" drop={() => drop('job')}>
          <JobName id={job} />
        </Filter>
      )}
      {instant === undefined ? null : (
        <Filter label="instant" drop={() => drop('instant')}>
          <Instant at={instant} />
        </Filter>
      )}
    </div>
  );
}

function JobName({ id }: { readonly id: string }) {
  const { data } = useJob(id);
  return data === undefined ? <code>{id.slice(0, 8)}</code> : `${data.project}/${data.name}`;
}

interface FilterProps {
  readonly label: string;
  readonly drop: () => void;
  readonly children: ReactNode;
}

function Filter({ label, drop, children }: FilterProps) {
  return (
    <span className="filter tag">
      <span className="muted">{label}</span> {children}
      <button
        type="button"
        className="button bare"
        aria-label={`Of any ${label}`}
        title={`Of any ${label}`}
        onClick={drop}
      >
        <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d="m4 4 8 8M12 4l-8 8" />
        </svg>
      </button>
    </span>
  );
}
