/** The editor of a document with its faults, a preview of saving, and the save button. */
import { type ReactNode, useRef } from 'react';
import { Failure, InlineFailure } from '../kit/failure.tsx';
import { CodeEditor, type CodeEditorHandle } from './code-editor.tsx';
import './document.css';
import { FaultList } from './fault-list.tsx';
import type { Schema } from './schema.ts';
import type { Check } from './use-check.ts';

interface Props {
  /** Of the editor: `Job document`. */
  readonly label: string;
  readonly text: string;
  readonly change: (text: string) => void;
  readonly check: Check<unknown>;
  /** What the editor completes from. */
  readonly schema: Schema | undefined;
  /** Whether saving the text would change nothing. */
  readonly isUnchanged: boolean;
  readonly saving: {
    readonly word: string;
    readonly isPossible: boolean;
    readonly isPending: boolean;
    readonly error: Error | null;
    readonly save: () => void;
  };
  /** Shown above the preview: what a user should know before saving. */
  readonly notes?: ReactNode;
  /** What saving would do; shown while the text has no faults. */
  readonly preview: ReactNode;
  /** Further buttons beside the save button. */
  readonly children?: ReactNode;
}

export function DocumentEditor(props: Props) {
  const { label, text, change, check, schema, isUnchanged, saving, notes, preview, children } = props;
  const editor = useRef<CodeEditorHandle>(null);
  const goTo = (at: number) => editor.current?.goTo(at);
  const maySave = saving.isPossible && !saving.isPending;
  return (
    <div className="document">
      <div className="document-text">
        <CodeEditor
          ref={editor}
          label={label}
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
            {statusOf(check, isUnchanged)}
          </span>
        </div>
        <InlineFailure error={saving.error} />
        {notes}
        <FaultList title="Faults" kind="fault" faults={check.faults} goTo={goTo} />
        <FaultList title="Warnings" kind="warning" faults={check.warnings} goTo={goTo} />
        {check.error === undefined ? null : <Failure error={check.error} />}
        {check.answer === undefined || check.faults.length > 0 ? null : preview}
      </div>
    </div>
  );
}

function statusOf({ faults, isCurrent, answer, error }: Check<unknown>, isUnchanged: boolean): string {
  if (faults.length > 0) return faults.length === 1 ? '1 fault' : `${faults.length} faults`;
  if (!isCurrent) return 'Checking…';
  if (error !== undefined || answer === undefined) return '';
  return isUnchanged ? 'No changes' : 'No faults';
}
