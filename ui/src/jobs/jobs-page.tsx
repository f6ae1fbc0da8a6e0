/** All jobs of the tenant: find one, see how it fares, pause it. */
import { Link } from 'wouter';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { useMayOperate } from '../session/session.ts';
import { JobsList } from './jobs-list.tsx';

export function JobsPage() {
  useTitle('Jobs');
  const [question, ask] = useUrlState('q');
  const mayOperate = useMayOperate();
  return (
    <>
      <header className="page-head">
        <h1>Jobs</h1>
        <SearchField label="Find a job" value={question} change={ask} />
        {mayOperate ? (
          <Link href="/jobs/new" className="button primary">
            New job
          </Link>
        ) : null}
      </header>
      <JobsList />
    </>
  );
}
