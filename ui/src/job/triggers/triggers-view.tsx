/** The triggers of a job: when they fire, what comes next, and what is still to be caught up. Live. */
import { useQuery } from '@tanstack/react-query';
import { tenant } from '../../client.ts';
import { Answer } from '../../kit/answer.tsx';
import { Empty } from '../../kit/empty.tsx';
import { keys } from '../../queries.ts';
import type { JobViewProps } from '../use-job.ts';
import { TriggerSection } from './trigger-section.tsx';
import './triggers.css';

const nextShown = 5;

function useFirings(id: string) {
  return useQuery({
    queryKey: keys.jobState(id, 'firings', nextShown),
    queryFn: ({ signal }) =>
      tenant('GET /api/jobs/{id}/firings', { params: { id }, query: { count: nextShown }, signal }),
  });
}

export default function TriggersView({ job }: JobViewProps) {
  const firings = useFirings(job.id);
  return (
    <Answer of={firings} what="Reading triggers">
      {({ items, paused }) =>
        items.length === 0 ? (
          <Empty title="No triggers">
            <p>Nothing starts this job by itself: it runs when somebody runs it, or after a task of another job.</p>
          </Empty>
        ) : (
          <div className="triggers">
            {paused ? (
              <p className="note">The job is paused: nothing fires. The times are those if it were unpaused now.</p>
            ) : null}
            {items.map((trigger) => (
              <TriggerSection key={trigger.trigger_id} job={job.id} trigger={trigger} />
            ))}
          </div>
        )
      }
    </Answer>
  );
}
