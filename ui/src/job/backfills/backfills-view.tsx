/** Backfills of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function BackfillsView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
