/** Graph of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function GraphView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
