/** Triggers of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function TriggersView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
