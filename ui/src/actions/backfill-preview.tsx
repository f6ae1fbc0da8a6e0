/** A preview of a backfill: the number of instants, and the first of them. */
import { Answer } from '../kit/answer.tsx';
import { Instant } from '../time/times.tsx';
import type { useBackfillPreview } from './use-backfill.ts';

interface Props {
  readonly query: ReturnType<typeof useBackfillPreview>;
  /** False while the answer for the current form is pending. */
  readonly isCurrent: boolean;
  readonly isPossible: boolean;
}

export function BackfillPreview({ query, isCurrent, isPossible }: Props) {
  if (!isPossible) return <p className="note">Enter a range to see which instants would fire.</p>;
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
            {total > items.length ? (
              <span className="muted">… and {(total - items.length).toLocaleString('en')} more</span>
            ) : null}
          </p>
        </div>
      )}
    </Answer>
  );
}
