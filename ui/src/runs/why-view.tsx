/** Why a run ran, or why it waits. */
import { Explanation } from '../explain/explanation.tsx';
import { Answer } from '../kit/answer.tsx';
import { type Run, useWhy } from './use-runs.ts';

export function WhyView({ run }: { readonly run: Run }) {
  const waits = run.finished_at === null && run.started_at === null;
  return (
    <Answer of={useWhy(run.id)} what="Reading why">
      {(why) => <Explanation why={why} waits={waits} />}
    </Answer>
  );
}
