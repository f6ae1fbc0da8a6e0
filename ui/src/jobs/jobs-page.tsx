/** All jobs of the tenant: find one, see how it fares, pause it. */
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { Failure } from '../kit/failure.tsx';
import { Loading } from '../kit/loading.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useShown, useUrlState } from '../kit/url-state.ts';
import './jobs.css';
import { JobsTable } from './jobs-table.tsx';
import { type JobRow, matching, useActivity, useJobs } from './use-jobs.ts';

const firstRows = 100;
const mostRows = 5_000;

export function JobsPage() {
  useTitle('Jobs');
  const [question, ask] = useUrlState('q');
  const { data, error, refetch } = useJobs();
  const found = matching(data?.jobs ?? [], question);
  return (
    <>
      <header className="page-head">
        <h1>Jobs</h1>
        {data === undefined ? null : (
          <p className="page-count" role="status">
            {question === '' ? data.jobs.length : `${found.length} of ${data.jobs.length}`}
            {data.more ? '+' : ''}
          </p>
        )}
        <SearchField label="Find a job" value={question} change={ask} />
      </header>
      {data !== undefined ? (
        <Found jobs={found} question={question} reset={() => ask('')} />
      ) : error === null ? (
        <Loading what="Reading jobs" />
      ) : (
        <Failure error={error} retry={refetch} />
      )}
    </>
  );
}

interface FoundProps {
  readonly jobs: readonly JobRow[];
  readonly question: string;
  readonly reset: () => void;
}

function Found({ jobs, question, reset }: FoundProps) {
  const [shown, showMore] = useShown(firstRows, mostRows);
  const rows = jobs.slice(0, shown);
  const activity = useActivity(rows);
  if (rows.length > 0) {
    return (
      <>
        <JobsTable jobs={rows} activity={activity} />
        {jobs.length <= rows.length ? null : (
          <button type="button" className="button more" onClick={showMore}>
            Show more of {jobs.length}
          </button>
        )}
      </>
    );
  }
  if (question === '') return <NoJobs />;
  return (
    <Empty title={`No job matches “${question}”`}>
      <button type="button" className="button" onClick={reset}>
        Show all jobs
      </button>
    </Empty>
  );
}

function NoJobs() {
  return (
    <Empty title="No jobs yet">
      <p>
        A job is a document: what to run, when, and after what. Apply one with{' '}
        <Command>millrace apply -f job.yaml</Command> and it appears here.
      </p>
    </Empty>
  );
}
