/** Definition of a job. */
import type { JobViewProps } from '../job-page.tsx';

export default function DefinitionView({ job }: JobViewProps) {
  return <p>{job.name}</p>;
}
