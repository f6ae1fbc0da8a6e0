/** The newest runs of a job, live. The address holds the filter by state (`?state=`). */
import { Answer } from '../kit/answer.tsx';
import { Empty } from '../kit/empty.tsx';
import { useShown, useUrlState } from '../kit/url-state.ts';
import { RunsTable } from '../runs/runs-table.tsx';
import { StateChoice } from '../runs/state-choice.tsx';
import { stateChoice } from '../runs/state-choices.ts';
import { useRunsOf } from '../runs/use-runs.ts';
import type { JobViewProps } from './use-job.ts';

const firstRows = 50;
const mostRows = 1_000;

export function JobRuns({ job: { id } }: JobViewProps) {
  const [asked, choose] = useUrlState('state');
  const { value: choice, states } = stateChoice(asked);
  const [shown, showMore] = useShown(firstRows, mostRows);
  return (
    <section aria-label="Runs">
      <StateChoice value={choice} change={choose} />
      <Answer of={useRunsOf(id, { state: states, limit: shown })} what="Reading runs">
        {({ items, next }) =>
          items.length === 0 ? (
            <NoRuns filtered={choice !== ''} />
          ) : (
            <>
              <RunsTable runs={items} />
              {next === null || shown === mostRows ? null : (
                <button type="button" className="button more" onClick={showMore}>
                  Show older runs
                </button>
              )}
            </>
          )
        }
      </Answer>
    </section>
  );
}

function NoRuns({ filtered }: { readonly filtered: boolean }) {
  if (filtered) return <Empty title="No such runs" />;
  return (
    <Empty title="No runs yet">
      <p>Runs appear here the moment a trigger fires, or when the job is run by hand.</p>
    </Empty>
  );
}
