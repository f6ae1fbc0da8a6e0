/** The editor of a document with its faults, a preview of saving, and the save button. */
import { type ReactNode, useRef } from 'react';
import { Failure, InlineFailure } from '../../kit/failure.tsx';
import { CodeEditor, type CodeEditorHandle } from './code-editor.tsx';
import './definition.css';
import { DryRun } from './dry-run.tsx';
import { FaultList } from './fault-list.tsx';
import { type Check, useSchema } from './use-check.ts';

interface Props {
  readonly text: string;
  readonly change: (text: string) => void;
  readonly check: Check;
  readonly saving: {
    readonly word: string;
    readonly isPossible: boolean;
    readonly isPending: boolean;
    readonly error: Error | null;
    readonly save: () => void;
  };
  /** Shown above the preview: what a user should know before saving. */
  readonly notes?: ReactNode;
  /** Further buttons beside the save button. */
  readonly children?: ReactNode;
}

export function DocumentEditor({ text, change, check, saving, notes, children }: Props) {
  const editor = useRef<CodeEditorHandle>(null);
  const schema = useSchema();
  const goTo = (at: number) => editor.current?.goTo(at);
  const maySave = saving.isPossible && !saving.isPending;
  return (
    <div className="document">
      <div className="document-text">
        <CodeEditor
          ref={editor}
          label="Job document"
          text={text}
          isReadOnly={false}
          faults={check.faults}
          warnings={check.warnings}
          schema={schema}
          change={change}
          save={() => maySave && saving.save()}
        />
        <p className="field-hint">
          Tab indents; Escape, then Tab leaves the editor. Ctrl-Space completes, Ctrl-S saves. Comments are not kept.
        </p>
      </div>
      <div className="document-side">
        <div className="document-save">
          <button type="button" className="button primary" disabled={!maySave} onClick={saving.save}>
            {saving.isPending ? 'Saving…' : saving.word}
          </button>
          {children}
          <span role="status" className="muted">
            {statusOf(check)}
          </span>
        </div>
        <InlineFailure error={saving.error} />
        {notes}
        <FaultList title="Faults" kind="fault" faults={check.faults} goTo={goTo} />
        <FaultList title="Warnings" kind="warning" faults={check.warnings} goTo={goTo} />
        {check.error === undefined ? null : <Failure error={check.error} />}
        {check.answer === undefined || check.faults.length > 0 ? null : (
          <DryRun answer={check.answer} isCurrent={check.isCurrent} />
        )}
      </div>
    </div>
  );
}

function statusOf({ faults, isCurrent, answer, error }: Check): string {
  if (faults.length > 0) return faults.length === 1 ? '1 fault' : `${faults.length} faults`;
  if (!isCurrent) return 'Checking…';
  if (error !== undefined || answer === undefined) return '';
  return answer.outcome === 'unchanged' ? 'No changes' : 'No faults';
}
