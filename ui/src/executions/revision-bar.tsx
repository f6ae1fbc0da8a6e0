/** Says that an earlier revision is shown, and leads to others: by a slider, one by one, and back to the newest. */
import { Link, useSearchParams } from 'wouter';
import { withChanges } from '../kit/url-state.ts';
import { useMayOperate } from '../session/session.ts';
import { ForkAction } from './actions/fork.tsx';
import type { Execution } from './use-executions.ts';

interface Props {
  readonly execution: Execution;
  readonly rev: number;
}

export function RevisionBar({ execution, rev }: Props) {
  const [search, setSearch] = useSearchParams();
  const mayOperate = useMayOperate();
  const { id, rev: newest } = execution;
  const to = (next: number): string => `/executions/${id}?${withChanges(search, { rev: String(next) })}`;
  return (
    <section className="revision-bar" aria-label="Revision">
      <p role="status">
        As at revision <strong>{rev.toLocaleString('en')}</strong> of {newest.toLocaleString('en')}
      </p>
      <span className="revision-steps">
        {rev > 1 ? (
          <Link className="button" href={to(rev - 1)} aria-label="The revision before">
            ←
          </Link>
        ) : null}
        <input
          type="range"
          aria-label="Revision"
          min={1}
          max={newest}
          value={rev}
          onChange={(event) => {
            const { value } = event.currentTarget;
            setSearch((old) => withChanges(old, { rev: value }), { replace: true });
          }}
        />
        <Link className="button" href={to(rev + 1)} aria-label="The revision after">
          →
        </Link>
      </span>
      {mayOperate ? <ForkAction execution={execution} rev={rev} label="Fork from here" /> : null}
      <Link className="button primary" href={`/executions/${id}?${withChanges(search, { rev: '' })}`}>
        Back to now
      </Link>
    </section>
  );
}
