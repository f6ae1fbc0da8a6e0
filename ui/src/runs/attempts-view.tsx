/** All runs of the same task at the same instant: earlier and later attempts, and what people ran again. */
import { Answer } from '../kit/answer.tsx';
import { RunsTable } from './runs-table.tsx';
import { type Run, useAttempts } from './use-runs.ts';

export function AttemptsView({ run }: { readonly run: Run }) {
  const attempts = useAttempts(run);
  return (
    <Answer of={attempts} what="Reading attempts">
      {({ items }) => <RunsTable runs={items} current={run.id} />}
    </Answer>
  );
}
