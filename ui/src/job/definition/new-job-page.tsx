/** Creates a new job: an example to start from, its project, and the same editor as for existing jobs. */
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { Empty } from '../../kit/empty.tsx';
import { Failure } from '../../kit/failure.tsx';
import { useTitle } from '../../kit/title.ts';
import { useUrlState } from '../../kit/url-state.ts';
import { useMayOperate } from '../../session/session.ts';
import { DocumentEditor } from '../../document/document-editor.tsx';
import { useDraft } from '../../document/draft.ts';
import { DryRun } from './dry-run.tsx';
import { exampleDocument, projectIn, withProject } from './new-document.ts';
import { ProjectField, useProjectNames } from './project-field.tsx';
import { useJobCheck, useJobSchema } from './use-job-check.ts';
import { useSave } from './use-save.ts';

export default function NewJobPage() {
  useTitle('New job');
  if (useMayOperate()) return <NewJob />;
  return <Empty title="Your role may view jobs, but not create them" />;
}

const dayMs = 86_400_000;

function useNewText() {
  const [wanted] = useUrlState('project');
  const projects = useProjectNames();
  const names = projects.data;
  // tomorrow, because an example that starts today would already have missed its first instant
  const [tomorrow] = useState(() => new Date(Date.now() + dayMs).toISOString().slice(0, 10));
  const [draft, setDraft] = useDraft('new job');
  const example = exampleDocument(wanted || names?.[0] || 'demo', tomorrow);
  const change = (text: string) => setDraft(text === example ? undefined : { text, version: 0 });
  return {
    text: draft?.text ?? example,
    isDraft: draft !== undefined,
    change,
    drop: () => setDraft(undefined),
    projects,
  };
}

function NewJob() {
  const { text, isDraft, change, drop, projects } = useNewText();
  const { data: names, error: unread, refetch } = projects;
  const [, go] = useLocation();
  const project = projectIn(text);
  const schema = useJobSchema();
  const check = useJobCheck({
    text,
    isOn: names !== undefined || unread !== null,
    on: ['new', names?.includes(project) ?? ''],
  });
  const save = useSave(undefined, ({ id }) => {
    drop();
    go(`/jobs/${id}`);
  });
  const { answer } = check;
  const isTaken = answer !== undefined && answer.outcome !== 'created';
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/jobs">Jobs</Link>
      </nav>
      <header className="page-head">
        <h1>New job</h1>
      </header>
      {unread === null || names !== undefined ? null : <Failure error={unread} retry={refetch} />}
      <ProjectField
        value={project}
        names={names}
        isWaiting={projects.isPending}
        change={(name) => change(withProject(text, name))}
      />
      <DocumentEditor
        label="Job document"
        text={text}
        change={change}
        check={check}
        schema={schema}
        isUnchanged={answer?.outcome === 'unchanged'}
        preview={answer === undefined ? null : <DryRun answer={answer} isCurrent={check.isCurrent} />}
        saving={{
          word: 'Create job',
          isPossible: check.isCurrent && check.faults.length === 0 && answer !== undefined && !isTaken,
          isPending: save.isPending,
          error: save.error,
          save: () => save.mutate(text),
        }}
        notes={
          isTaken ? (
            <p className="note warned">
              The project already has <Link href={`/jobs/${answer.id}/definition`}>a job of that name</Link>. Choose
              another name, or edit that job.
            </p>
          ) : null
        }
      >
        {isDraft ? (
          <button type="button" className="button" onClick={drop}>
            Start over
          </button>
        ) : null}
      </DocumentEditor>
    </>
  );
}
