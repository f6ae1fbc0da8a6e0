/** Why an execution is where it is. */
import { Explanation } from '../explain/explanation.tsx';
import { Answer } from '../kit/answer.tsx';
import { useExecutionWhy, type ExecutionViewProps } from './use-executions.ts';

export function ExecutionWhyView({ execution, latest }: ExecutionViewProps) {
  const why = useExecutionWhy(latest.id, latest.rev);
  return (
    <Answer of={why} what="Reading why">
      {(data) => (
        <>
          {execution.rev < latest.rev ? <p className="note">This is about the execution as it is now.</p> : null}
          <Explanation why={data} waits={false} />
        </>
      )}
    </Answer>
  );
}
