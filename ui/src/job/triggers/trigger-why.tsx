/** Why a trigger fires when it does, or what keeps it: the server's explanation, on demand. */
import { useQuery } from '@tanstack/react-query';
import { tenant } from '../../client.ts';
import { BriefExplanation } from '../../explain/explanation.tsx';
import { Answer } from '../../kit/answer.tsx';
import { keys } from '../../queries.ts';

interface Props {
  readonly job: string;
  readonly trigger: string;
}

export function TriggerWhy({ job, trigger }: Props) {
  const why = useQuery({
    queryKey: keys.jobState(job, 'why trigger', trigger),
    queryFn: ({ signal }) => tenant('GET /api/explain/trigger/{id}', { params: { id: trigger }, signal }),
  });
  return (
    <Answer of={why} what="Finding out why">
      {(data) => (
        <div className="trigger-why">
          <BriefExplanation why={data} />
        </div>
      )}
    </Answer>
  );
}
