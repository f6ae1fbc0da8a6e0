/** Jobs that the address asks for (`?q=`, `?show=`, `?n=`), all or those of one project. */
import { useSearchParams } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { useShown, useUrlState } from '../kit/url-state.ts';
import './jobs.css';
import { JobsTable } from './jobs-table.tsx';
import { shows, useJobs } from './use-jobs.ts';

const firstRows = 50;
const mostRows = 1_000;
const choices = [
  { value: 'all', label: 'All' },
  { value: 'running', label: 'Running' },
  { value: 'failing', label: 'Failing' },
  { value: 'paused', label: 'Paused' },
] as const;

export function JobsList({ project }: { readonly project?: string }) {
  const [question] = useUrlState('q');
  const [asked, choose] = useUrlState('show', 'all');
  const [shown, showMore] = useShown(firstRows, mostRows);
  const show = shows.find((name) => name === asked) ?? 'all';
  const jobs = useJobs({ q: question, show, limit: shown, ...(project === undefined ? {} : { project }) });
  const [, setSearch] = useSearchParams();
  // in one change, because the second of two changes of the address would undo the first
  const reset = (): void => setSearch({});
  return (
    <section aria-label="Jobs">
      <div className="bar">
        <Choice label="Which jobs" options={choices} value={show} change={choose} />
        <p className="page-count" role="status">
          {jobs.data === undefined
            ? ''
            : jobs.data.total === 1
              ? '1 job'
              : `${jobs.data.total.toLocaleString('en')} jobs`}
        </p>
      </div>
      <Answer of={jobs} what="Reading jobs">
        {({ items, next }) =>
          items.length === 0 ? (
            <Nothing isFiltered={question !== '' || show !== 'all'} reset={reset} />
          ) : (
            <>
              <JobsTable jobs={items} isOneProject={project !== undefined} />
              {next === null || shown === mostRows ? null : (
                <button type="button" className="button more" onClick={showMore}>
                  Show more
                </button>
              )}
            </>
          )
        }
      </Answer>
    </section>
  );
}

function Nothing({ isFiltered, reset }: { readonly isFiltered: boolean; readonly reset: () => void }) {
  if (isFiltered) {
    return (
      <Empty title="No such jobs">
        <button type="button" className="button" onClick={reset}>
          Show all jobs
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No jobs yet">
      <p>
        A job is a document: what to run, when, and after what. Write one under “New job”, or apply a file with{' '}
        <Command>millrace apply -f job.yaml</Command>.
      </p>
    </Empty>
  );
}
