/** Grid of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function GridView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
