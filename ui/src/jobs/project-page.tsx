/** One project: its jobs, its configuration, and the names in its stash. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { Stash } from '../admin/stash.tsx';
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { keys } from '../queries.ts';
import { JobsList } from './jobs-list.tsx';
import { type Project, useProject } from './use-jobs.ts';

export function ProjectPage({ id }: { readonly id: string }) {
  const project = useProject(id);
  useTitle(project.data?.name);
  return (
    <Answer of={project} what="Reading the project">
      {(data) => (
        <>
          <Head project={data} />
          <JobsList project={id} />
          <Belongings id={id} />
        </>
      )}
    </Answer>
  );
}

function Head({ project }: { readonly project: Project }) {
  const [question, ask] = useUrlState('q');
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/projects">Projects</Link>
      </nav>
      <header className="page-head">
        <h1>{project.name}</h1>
        <SearchField label="Find a job" value={question} change={ask} />
      </header>
      {project.description === '' ? null : <p className="lede">{project.description}</p>}
    </>
  );
}

/** The configuration of its tasks, in clear, and the stash. */
function Belongings({ id }: { readonly id: string }) {
  const { data: config = {} } = useQuery({
    queryKey: [...keys.projects, id, 'config'],
    queryFn: ({ signal }) => tenant('GET /api/projects/{id}/config', { params: { id }, signal }),
  });
  return (
    <div className="project-belongings">
      {Object.keys(config).length === 0 ? null : (
        <section aria-labelledby="config">
          <h2 id="config">Configuration</h2>
          {/* a region that scrolls must be reachable by keyboard */}
          <pre className="project-config" tabIndex={0}>
            {JSON.stringify(config, null, 2)}
          </pre>
        </section>
      )}
      <Stash project={id} />
    </div>
  );
}
