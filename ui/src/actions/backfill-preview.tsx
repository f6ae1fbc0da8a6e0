/** What a backfill would fire: how many instants, and the first of them. */
import { Answer } from '../kit/answer.tsx';
import { Instant } from '../time/times.tsx';
import type { useBackfillPreview } from './use-backfill.ts';

interface Props {
  readonly query: ReturnType<typeof useBackfillPreview>;
  /** False while an answer to what stands in the form is on its way. */
  readonly isCurrent: boolean;
  readonly isPossible: boolean;
}

export function BackfillPreview({ query, isCurrent, isPossible }: Props) {
  if (!isPossible) return <p className="note">Give a range to see what it would fire.</p>;
  return (
    <Answer of={query} what="Counting instants">
      {({ instants: { total }, items }) => (
        <div className="preview" aria-busy={!isCurrent}>
          <p role="status">
            {total === 0 ? (
              'No instant of these triggers lies in that range.'
            ) : (
              <>
                <strong>{total.toLocaleString('en')}</strong> {total === 1 ? 'instant fires' : 'instants fire'}:
              </>
            )}
          </p>
          <p className="preview-list">
            {items.map(({ instant }) => (
              <Instant key={instant} at={instant} />
            ))}
            {total > items.length ? <span className="muted">… and so on</span> : null}
          </p>
        </div>
      )}
    </Answer>
  );
}
