/**
 * The latest instants of a job as a row of small shapes, oldest at the left; one is chosen. Without a choice it is the
 * newest, and stays the newest as time goes on.
 */
import type { TenantAnswer } from '../client.ts';
import { shapeOf, State } from '../kit/state.tsx';
import { formatInstant } from '../time/format.ts';
import { Instant, Span } from '../time/times.tsx';
import './instant-picker.css';
import { useInstants } from './use-job.ts';
import { useSelection } from './use-selection.ts';

type InstantRow = TenantAnswer<'GET /api/jobs/{id}/instants'>['items'][number];

/** As many as fit a phone; fewer where each has many tokens to judge. */
const most = 24;
const mostTokens = 3_000;

export interface Picked {
  /** Undefined while none is known, and where the job has none. */
  readonly instant: string | undefined;
  readonly instants: readonly InstantRow[] | undefined;
  readonly error: Error | null;
  readonly refetch: () => unknown;
}

export function usePickedInstant(job: string, tasks: number): Picked {
  const { instant } = useSelection();
  const limit = Math.max(6, Math.min(most, Math.floor(mostTokens / Math.max(1, tasks))));
  const { data, error, refetch } = useInstants(job, limit);
  return { instant: instant ?? data?.items[0]?.instant, instants: data?.items, error, refetch };
}

export function InstantPicker({ picked: { instant, instants = [] } }: { readonly picked: Picked }) {
  const { instant: pinned, select } = useSelection();
  const row = instants.find((one) => one.instant === instant);
  return (
    <div className="instant-picker">
      <fieldset className="instant-strip">
        <legend className="unseen">Instant</legend>
        {instants.toReversed().map((one) => (
          <Pick
            key={one.instant}
            row={one}
            checked={one.instant === instant}
            pick={() => select({ instant: one.instant })}
          />
        ))}
      </fieldset>
      {instant === undefined ? null : (
        <p className="instant-chosen">
          <Instant at={instant} />
          {row === undefined ? null : <State state={row.state} />}
          {row?.started_at == null ? null : (
            <span className="muted">
              <Span from={row.started_at} to={row.finished_at} />
            </span>
          )}
        </p>
      )}
      {pinned === undefined ? (
        <span className="muted instant-follows">follows the newest</span>
      ) : (
        <button type="button" className="button" onClick={() => select({ instant: undefined })}>
          Newest
        </button>
      )}
    </div>
  );
}

interface PickProps {
  readonly row: InstantRow;
  readonly checked: boolean;
  readonly pick: () => void;
}

function Pick({ row: { instant, state }, checked, pick }: PickProps) {
  const label = `${formatInstant(instant)}, ${state}`;
  return (
    <label className="instant-pick state" data-state={state} title={label}>
      <input type="radio" name="instant" className="unseen" checked={checked} onChange={pick} aria-label={label} />
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={shapeOf(state)} />
      </svg>
    </label>
  );
}
