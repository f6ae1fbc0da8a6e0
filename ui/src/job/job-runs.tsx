/** The newest runs of a job, live; which states to see is in the address (`?state=`). */
import { Choice } from '../kit/choice.tsx';
import { Empty } from '../kit/empty.tsx';
import { Failure } from '../kit/failure.tsx';
import { Loading } from '../kit/loading.tsx';
import { useShown, useUrlState } from '../kit/url-state.ts';
import { RunsTable } from '../runs/runs-table.tsx';
import { useRunsOf } from '../runs/use-runs.ts';
import type { JobViewProps } from './job-page.tsx';

const choices = [
  { value: '', label: 'All' },
  { value: 'unfinished', label: 'Unfinished' },
  { value: 'failed', label: 'Failed' },
  { value: 'success', label: 'Succeeded' },
] as const;

const statesOf: Readonly<Record<string, string>> = {
  unfinished: 'active,running',
  failed: 'failure,timeout,error',
  success: 'success',
};

const firstRows = 50;
const mostRows = 1_000;

export function JobRuns({ job: { id } }: JobViewProps) {
  const [choice, choose] = useUrlState('state');
  const [shown, showMore] = useShown(firstRows, mostRows);
  const { data, error, refetch } = useRunsOf(id, { state: statesOf[choice], limit: shown });
  return (
    <section aria-label="Runs">
      <Choice label="Which runs" options={choices} value={choice} change={choose} />
      {data === undefined ? (
        error === null ? (
          <Loading what="Reading runs" />
        ) : (
          <Failure error={error} retry={refetch} />
        )
      ) : data.items.length === 0 ? (
        <NoRuns filtered={choice !== ''} />
      ) : (
        <>
          <RunsTable runs={data.items} />
          {data.next === null || shown === mostRows ? null : (
            <button type="button" className="button more" onClick={showMore}>
              Show older runs
            </button>
          )}
        </>
      )}
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
