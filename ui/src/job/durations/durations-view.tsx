/** Durations of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function DurationsView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
