/** All runs of the tenant, newest first, live. The address holds filters and position. */
import { Link, useSearchParams } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Empty } from '../kit/empty.tsx';
import { useTitle } from '../kit/title.ts';
import { withChanges } from '../kit/url-state.ts';
import { RunsFilters } from './runs-filters.tsx';
import { RunsTable } from './runs-table.tsx';
import './runs.css';
import { StateChoice } from './state-choice.tsx';
import { stateChoice } from './state-choices.ts';
import { useRuns } from './use-runs.ts';

const pageRows = 100;

export default function RunsPage() {
  useTitle('Runs');
  const [search, setSearch] = useSearchParams();
  const asked = (name: string): string | undefined => search.get(name) ?? undefined;
  const { value: state, states } = stateChoice(asked('state'));
  const [job, instant, cursor] = [asked('job'), asked('instant'), asked('cursor')];
  const runs = useRuns({ state: states, job, instant, cursor, limit: pageRows });
  // another filter is another list: it begins at its newest
  const change = (name: string, value: string): void => setSearch(withChanges(search, { [name]: value, cursor: '' }));
  return (
    <>
      <header className="page-head">
        <h1>Runs</h1>
      </header>
      <div className="bar">
        <StateChoice value={state} change={(value) => change('state', value)} />
        <RunsFilters job={job} instant={instant} drop={(name) => change(name, '')} />
      </div>
      <Answer of={runs} what="Reading runs">
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <NoRuns
                filtered={[state || undefined, job, instant, cursor].some((each) => each !== undefined)}
                more={next !== null}
              />
            ) : (
              <RunsTable runs={items} ofManyJobs={job === undefined} />
            )}
            <nav className="pages" aria-label="Pages">
              {cursor === undefined ? null : (
                <Link className="button" href={hrefOf(withChanges(search, { cursor: '' }))}>
                  Newest runs
                </Link>
              )}
              {next === null ? null : (
                <Link className="button" href={hrefOf(withChanges(search, { cursor: next }))}>
                  Show older
                </Link>
              )}
            </nav>
          </>
        )}
      </Answer>
    </>
  );
}

function hrefOf(search: URLSearchParams): string {
  return search.size === 0 ? '/runs' : `/runs?${search}`;
}

function NoRuns({ filtered, more }: { readonly filtered: boolean; readonly more: boolean }) {
  if (more) {
    return (
      <Empty title="None of the latest runs is such a one">
        <p>A page looks through the latest hundred thousand runs. Older ones are looked at with “Show older”.</p>
      </Empty>
    );
  }
  if (filtered) return <Empty title="No such runs" />;
  return (
    <Empty title="No runs yet">
      <p>Runs appear here the moment a trigger fires, or when a job is run by hand.</p>
    </Empty>
  );
}
