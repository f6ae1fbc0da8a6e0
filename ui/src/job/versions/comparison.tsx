/** Compares two versions: the choice of versions, the layout, and the button that restores an old version. */
import { lazy, Suspense } from 'react';
import { Link } from 'wouter';
import { Choice } from '../../kit/choice.tsx';
import { Failure } from '../../kit/failure.tsx';
import { Field } from '../../kit/field.tsx';
import { Loading } from '../../kit/loading.tsx';
import { useUrlState } from '../../kit/url-state.ts';
import { useMayOperate } from '../../session/session.ts';
import type { Job } from '../use-job.ts';
import { useVersion } from './use-versions.ts';

const DocumentDiff = lazy(() => import('../../document/document-diff.tsx'));

const layouts = [
  { value: 'unified', label: 'One column' },
  { value: 'side', label: 'Side by side' },
] as const;

interface Props {
  readonly job: Job;
  /** 0: before there was anything. */
  readonly from: number;
  readonly to: number;
}

export function Comparison({ job, from, to }: Props) {
  const mayOperate = useMayOperate();
  const [layout, setLayout] = useUrlState('layout', 'unified');
  const [before, after] = [useVersion(job.id, from), useVersion(job.id, to)];
  const error = before.error ?? after.error;
  const isReady = (from === 0 || before.data !== undefined) && after.data !== undefined;
  return (
    <section aria-label="Comparison" className="comparison">
      <div className="comparison-head">
        <VersionField label="From" name="from" value={from} most={job.version} />
        <VersionField label="To" name="to" value={to} most={job.version} />
        <Choice label="Layout" options={layouts} value={layout} change={setLayout} />
        {mayOperate && to !== job.version && after.data != null ? (
          <Link href={`/jobs/${job.id}/definition?restore=${to}`} className="button">
            Restore version {to}
          </Link>
        ) : null}
      </div>
      {error !== null ? (
        <Failure error={error} />
      ) : isReady ? (
        <Suspense fallback={<Loading what="Comparing" />}>
          <DocumentDiff
            before={before.data?.definition}
            after={after.data?.definition}
            isSideBySide={layout === 'side'}
          />
        </Suspense>
      ) : (
        <Loading what="Reading the two versions" />
      )}
    </section>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: 'from' | 'to';
  readonly value: number;
  readonly most: number;
}

function VersionField({ label, name, value, most }: FieldProps) {
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
