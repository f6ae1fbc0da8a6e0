/** Timeline of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function TimelineView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
