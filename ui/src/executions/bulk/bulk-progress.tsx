/** How far an operation on many executions has come, what became of them, and which it could not be done to. */
import { Link } from 'wouter';
import { ActionFoot } from '../../actions/action-dialog.tsx';
import { InlineFailure } from '../../kit/failure.tsx';
import { Progress as ProgressBar } from '../../kit/progress.tsx';
import type { Progress, useBulk } from './use-bulk.ts';

interface Props {
  readonly bulk: ReturnType<typeof useBulk>;
  /** As they were counted before. */
  readonly total: number | undefined;
  readonly close: () => void;
}

export function BulkProgress({ bulk: { progress, stop }, total, close }: Props) {
  if (progress === undefined) return null;
  const { matched, done, accepted, refused, failures, state, error } = progress;
  return (
    <div className="action-form">
      <ProgressBar
        label="Executions"
        total={state === 'done' ? matched : Math.max(total ?? 0, matched)}
        parts={[
          { name: 'done', count: done, state: 'success' },
          { name: 'stored', count: accepted, state: 'running' },
          { name: 'refused', count: refused, state: 'failure' },
        ]}
      />
      <p role="status" className="note">
        {words(progress)}
      </p>
      {failures.length === 0 ? null : <Failures failures={failures} />}
      <ActionFoot close={close}>
        <InlineFailure error={error} />
        {state === 'running' ? (
          <button type="button" className="button" onClick={stop}>
            Stop
          </button>
        ) : null}
      </ActionFoot>
    </div>
  );
}

function words({ done, accepted, refused, state }: Progress): string {
  const parts = [
    `${done.toLocaleString('en')} done`,
    ...(accepted > 0 ? [`${accepted.toLocaleString('en')} stored until a conductor takes them`] : []),
    ...(refused > 0 ? [`${refused.toLocaleString('en')} refused`] : []),
  ].join(', ');
  if (state === 'running') return `${parts}…`;
  return state === 'done' ? `${parts}. No execution is left.` : `${parts}. The others stay as they were.`;
}

function Failures({ failures }: { readonly failures: Progress['failures'] }) {
  return (
    <ul className="preview-rows bulk-failures">
      {failures.map(({ id, detail }) => (
        <li key={id}>
          <span>
            <Link href={`/executions/${id}`}>{id.slice(-8)}</Link> {detail}
          </span>
        </li>
      ))}
    </ul>
  );
}
