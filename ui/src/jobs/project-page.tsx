/** One project: its jobs, its configuration, and the names in its stash. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
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
        <Link href="/jobs">Jobs</Link>
      </nav>
      <header className="page-head">
        <h1>{project.name}</h1>
        <span className="tag plain">project</span>
        <SearchField label="Find a job" value={question} change={ask} />
      </header>
      {project.description === '' ? null : <p className="lede">{project.description}</p>}
    </>
  );
}

/** What its tasks are given. */
function Belongings({ id }: { readonly id: string }) {
  const config = useQuery({
    queryKey: [...keys.projects, id, 'config'],
    queryFn: ({ signal }) => tenant('GET /api/projects/{id}/config', { params: { id }, signal }),
  });
  const stash = useQuery({
    queryKey: [...keys.stash, id],
    queryFn: ({ signal }) => tenant('GET /api/projects/{id}/stash', { params: { id }, signal }),
  });
  const settings = Object.entries(config.data ?? {});
  const names = stash.data ?? [];
  if (settings.length + names.length === 0) return null;
  return (
    <section className="project-belongings" aria-label="What its tasks are given">
      {settings.length === 0 ? null : (
        <>
          <h2>Configuration</h2>
          <pre className="project-config">{JSON.stringify(config.data, null, 2)}</pre>
        </>
      )}
      {names.length === 0 ? null : (
        <>
          <h2>Stash</h2>
          <p className="muted">Names only; values are never shown.</p>
          <ul className="project-stash">
            {names.map((name) => (
              <li key={name}>
                <code>{name}</code>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
