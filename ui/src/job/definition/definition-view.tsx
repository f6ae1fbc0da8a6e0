/**
 * A job's document, read-only for viewers and editable for operators. Unsaved text is kept as a draft; `?restore=3` starts a
 * draft from an old version.
 */
import { useEffect, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { DeleteJobAction } from '../../actions/delete-job.tsx';
import { Answer } from '../../kit/answer.tsx';
import { Failure } from '../../kit/failure.tsx';
import { useUrlState } from '../../kit/url-state.ts';
import { useMayOperate } from '../../session/session.ts';
import type { JobViewProps } from '../use-job.ts';
import { useDocument } from '../use-job.ts';
import { useVersion } from '../versions/use-versions.ts';
import { CodeEditor } from '../../document/code-editor.tsx';
import '../../document/document.css';
import { DryRun } from './dry-run.tsx';
import { DocumentEditor } from '../../document/document-editor.tsx';
import { yamlOf, yamlOfJson } from '../../document/document-text.ts';
import { useDraft } from '../../document/draft.ts';
import { useJobCheck, useJobSchema } from './use-job-check.ts';
import { useSave } from './use-save.ts';

const nothing: readonly never[] = [];
const ignore = () => undefined;

export default function DefinitionView({ job }: JobViewProps) {
  return (
    <Answer of={useDocument(job.id)} what="Reading the document">
      {(document) => <Definition job={job} document={document} />}
    </Answer>
  );
}

function Definition({ job, document }: JobViewProps & { readonly document: string }) {
  const text = useMemo(() => yamlOfJson(document), [document]);
  if (useMayOperate()) return <Editing key={job.id} job={job} base={text} />;
  return (
    <CodeEditor
      label="Job document, read only"
      text={text}
      isReadOnly
      faults={nothing}
      warnings={nothing}
      schema={undefined}
      change={ignore}
      save={ignore}
    />
  );
}

interface EditingProps extends JobViewProps {
  /** The saved text. */
  readonly base: string;
}

/** The text being edited. It is a draft only while it differs from the saved text. */
function useText({ job, base }: EditingProps) {
  const [draft, setDraft] = useDraft(job.id);
  const [restore, setRestore] = useUrlState('restore');
  const old = useVersion(job.id, restore === '' ? undefined : Number(restore));
  const change = (text: string) => {
    setDraft(text === base ? undefined : { text, version: draft?.version ?? job.version });
  };
  const wanted = old.data == null ? undefined : yamlOf(old.data.definition);
  useEffect(() => {
    if (restore === '' || wanted === undefined) return;
    setDraft(wanted === base ? undefined : { text: wanted, version: job.version });
    setRestore('');
  }, [restore, wanted, base, job.version, setDraft, setRestore]);
  const restoring = restore === '' ? null : <Restoring version={restore} of={old} />;
  return { text: draft?.text ?? base, draft, change, drop: () => setDraft(undefined), restoring };
}

interface RestoringProps {
  readonly version: string;
  readonly of: ReturnType<typeof useVersion>;
}

/** Explains why the version in the address is not in the editor. */
function Restoring({ version, of: { data, error, refetch, fetchStatus } }: RestoringProps) {
  if (error !== null) return <Failure error={error} retry={refetch} />;
  if (data === null || (data === undefined && fetchStatus === 'idle')) {
    return (
      <p className="note warned" role="alert">
        Nothing was restored: the job has no version {version}.
      </p>
    );
  }
  return null;
}

function Editing({ job, base }: EditingProps) {
  const { text, draft, change, drop, restoring } = useText({ job, base });
  const [, go] = useLocation();
  const schema = useJobSchema();
  const check = useJobCheck({ text, isOn: true, on: [job.version] });
  const save = useSave(job.id, (answer) => {
    drop();
    if (answer.id !== job.id) go(`/jobs/${answer.id}`);
  });
  const { answer } = check;
  const isOther = answer !== undefined && answer.id !== job.id;
  // another job is edited on its own page, which shows what is replaced
  const isMine = !isOther || answer.outcome === 'created';
  const isPossible =
    isMine && check.isCurrent && check.faults.length === 0 && answer !== undefined && answer.outcome !== 'unchanged';
  return (
    <>
      <DocumentEditor
        label="Job document"
        text={text}
        change={change}
        check={check}
        schema={schema}
        isUnchanged={answer?.outcome === 'unchanged'}
        preview={answer === undefined ? null : <DryRun answer={answer} isCurrent={check.isCurrent} />}
        saving={{
          word: isOther && answer.outcome === 'created' ? 'Create another job' : 'Save',
          isPossible,
          isPending: save.isPending,
          error: save.error,
          save: () => save.mutate(text),
        }}
        notes={
          <>
            {restoring}
            {draft === undefined || draft.version === job.version ? null : (
              <p className="note warned">
                This draft is based on version {draft.version}, but the job is now at version {job.version}. Saving
                replaces <Link href={`/jobs/${job.id}/versions?from=${draft.version}`}>what changed since</Link>.
              </p>
            )}
            {isOther ? <OtherJob id={job.id} outcome={answer.outcome} other={answer.id} /> : null}
          </>
        }
      >
        {draft === undefined ? null : (
          <button type="button" className="button" onClick={drop}>
            Discard changes
          </button>
        )}
      </DocumentEditor>
      <p className="document-end">
        <DeleteJobAction job={job} />
      </p>
    </>
  );
}

/** A document without a uuid is identified by project and name: with another name it is another job. */
function OtherJob({ id, outcome, other }: { readonly id: string; readonly outcome: string; readonly other: string }) {
  return (
    <p className="note warned">
      {outcome === 'created' ? (
        'This is the name of a new job: saving creates it and leaves this job unchanged. '
      ) : (
        <>
          This is the name of <Link href={`/jobs/${other}`}>another job</Link>, which is edited on its own page.{' '}
        </>
      )}
      To rename this job, add <code>uuid: {id}</code>.
    </p>
  );
}
