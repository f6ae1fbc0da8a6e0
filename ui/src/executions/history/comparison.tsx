/** The difference between two revisions of an execution: its fields, its live steps, and its document if that changed. */
import { useMemo } from 'react';
import { Link } from 'wouter';
import DocumentDiff from '../../document/document-diff.tsx';
import { Failure } from '../../kit/failure.tsx';
import { Field } from '../../kit/field.tsx';
import { Loading } from '../../kit/loading.tsx';
import { useUrlState } from '../../kit/url-state.ts';
import { type Execution, useDocument, useExecutionAt } from '../use-executions.ts';
import { comparable } from './comparable.ts';

interface Props {
  readonly execution: Execution;
  /** 0: before it began. */
  readonly from: number;
  readonly to: number;
  /** The address without the comparison. */
  readonly close: string;
}

export function Comparison({ execution: { id, rev }, from, to, close }: Props) {
  const before = useExecutionAt(id, from > 0 ? from : undefined);
  const after = useExecutionAt(id, to);
  const [left, right] = useMemo(
    () => [from === 0 ? undefined : before.data && comparable(before.data), after.data && comparable(after.data)],
    [from, before.data, after.data],
  );
  const error = before.error ?? after.error;
  const isReady = (from === 0 || before.data?.rev === from) && after.data?.rev === to;
  const isOther = from > 0 && before.data?.own_document !== after.data?.own_document;
  return (
    <section className="comparison revision-comparison" aria-label="Comparison of two revisions">
      <div className="comparison-head">
        <RevisionField label="From revision" name="from" value={from} most={rev} />
        <RevisionField label="To revision" name="to" value={to} most={rev} />
        <Link className="button" href={close}>
          Close the comparison
        </Link>
      </div>
      {error !== null ? (
        <Failure error={error} />
      ) : isReady ? (
        <>
          <DocumentDiff before={left} after={right} isSideBySide={false} />
          {isOther ? <Documents id={id} from={from} to={to} /> : null}
        </>
      ) : (
        <Loading what="Reading the two revisions" />
      )}
    </section>
  );
}

function Documents({ id, from, to }: { readonly id: string; readonly from: number; readonly to: number }) {
  const [before, after] = [useDocument(id, from), useDocument(id, to)];
  if (before.data === undefined || after.data === undefined) return null;
  return (
    <>
      <h2>The document</h2>
      <DocumentDiff before={before.data} after={after.data} isSideBySide={false} />
    </>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: 'from' | 'to';
  readonly value: number;
  readonly most: number;
}

function RevisionField({ label, name, value, most }: FieldProps) {
  const [, set] = useUrlState(name);
  return (
    <Field label={label}>
      {(wiring) => (
        <input
          {...wiring}
          className="input version-number"
          type="number"
          min={name === 'from' ? 0 : 1}
          max={most}
          value={value}
          onChange={(event) => set(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
