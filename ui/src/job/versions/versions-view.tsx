/** Versions of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function VersionsView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
