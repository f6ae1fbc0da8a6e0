/** All projects, with their descriptions and links to their jobs. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { ActionDialog } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { Empty } from '../kit/empty.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { keys } from '../queries.ts';
import { fetchProjects, type Project } from './fetch-projects.ts';
import './jobs.css';
import { NewProject } from './new-project.tsx';

function useProjects() {
  return useQuery({
    queryKey: [...keys.projects, 'all'],
    queryFn: ({ signal }) => fetchProjects(signal),
  });
}

export default function ProjectsPage() {
  useTitle('Projects');
  const [question, ask] = useUrlState('q');
  return (
    <>
      <header className="page-head">
        <h1>Projects</h1>
        <SearchField label="Find a project" value={question} change={ask} />
        <ActionDialog label="New project" title="New project" kind="primary">
          {(close) => <NewProject close={close} />}
        </ActionDialog>
      </header>
      <Answer of={useProjects()} what="Reading projects">
        {(projects) => <Found projects={matching(projects, question)} isFiltered={question !== ''} />}
      </Answer>
    </>
  );
}

function matching(projects: readonly Project[], question: string): readonly Project[] {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  return projects.filter(({ name, description }) => {
    const text = `${name} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function Found({ projects, isFiltered }: { readonly projects: readonly Project[]; readonly isFiltered: boolean }) {
  if (projects.length === 0) {
    return (
      <Empty title={isFiltered ? 'No such project' : 'No projects yet'}>
        <p>A project holds jobs that belong together, their configuration and their secrets.</p>
      </Empty>
    );
  }
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Project</th>
          <th scope="col">About</th>
        </tr>
      </thead>
      <tbody>
        {projects.map(({ id, name, description }) => (
          <tr key={id}>
            <th scope="row">
              <Link href={`/projects/${id}`}>{name}</Link>
            </th>
            <td className="muted">{description}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
