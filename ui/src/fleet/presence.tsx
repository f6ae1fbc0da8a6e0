/** Whether a worker or scheduler is up: a shape, a word and a colour. */
import { Age } from '../time/times.tsx';
import './fleet.css';

interface Props {
  readonly status: 'up' | 'gone';
  readonly lastSeenAt: string;
}

const shapes = {
  up: 'm3 8.6 3.4 3.4L13 4.5',
  gone: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3.5M8 11h.01',
} as const;

export function Presence({ status, lastSeenAt }: Props) {
  return (
    <span className="presence" data-status={status}>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={shapes[status]} />
      </svg>
      {status === 'up' ? (
        'up'
      ) : (
        <>
          silent <span className="muted">seen</span> <Age at={lastSeenAt} />
        </>
      )}
    </span>
  );
}
