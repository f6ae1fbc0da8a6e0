/** The form of a task of a person, made from its fields. Faults are shown once a person has tried to send it. */
import { type ReactNode, useState } from 'react';
import { CallFailed } from '../../../../src/http/client.ts';
import { InlineFailure } from '../../kit/failure.tsx';
import { type AnswerDraft, faultsByField, type FormField, readAnswer, startDraft } from './answer-draft.ts';
import './answer-form.css';
import { FormInput } from './form-input.tsx';

interface Props {
  readonly fields: readonly FormField[];
  readonly isPending: boolean;
  readonly error: Error | null;
  readonly send: (answer: Readonly<Record<string, unknown>>) => void;
  /** Further buttons beside the one that sends. */
  readonly children?: ReactNode;
}

export function AnswerForm({ fields, isPending, error, send, children }: Props) {
  const [draft, setDraft] = useState<AnswerDraft>(() => startDraft(fields));
  const [isTried, setTried] = useState(false);
  const read = readAnswer(fields, draft);
  const refused = faultsByField(fields, problemOf(error));
  const faults = isTried && !read.ok ? read.faults : refused;
  const isPlaced = Object.keys(refused).some((name) => name !== '');
  return (
    <form
      className="answer-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (read.ok && !isPending) send(read.answer);
        else event.currentTarget.querySelector<HTMLElement>('[data-fault] :is(input, select, textarea)')?.focus();
      }}
    >
      {fields.map((field) => (
        <FormInput
          key={field.name}
          field={field}
          value={draft[field.name] ?? ''}
          fault={faults[field.name]}
          change={(value) => setDraft((before) => ({ ...before, [field.name]: value }))}
        />
      ))}
      <footer className="answer-foot">
        <button type="submit" className="button primary" disabled={isPending}>
          {isPending ? 'Sending…' : fields.length === 0 ? 'Mark as done' : 'Send answer'}
        </button>
        {children}
        {isPlaced ? null : <InlineFailure error={error} />}
      </footer>
    </form>
  );
}

function problemOf(error: Error | null) {
  return error instanceof CallFailed ? (error.problem?.faults ?? []) : [];
}
