/** The state of a subscriber: a shape, a word and a colour. An active one that fails or lags is distinguished. */
import type { Subscriber } from './use-bus.ts';

type Tone = 'well' | 'busy' | 'waits' | 'quiet' | 'bad';

const ring = 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11Z';
const shapes: Readonly<Record<Tone, string>> = {
  well: 'm3 8.6 3.4 3.4L13 4.5',
  busy: 'M5 3.2v9.6L12.8 8Z',
  waits: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v2.8h-2.8',
  quiet: `${ring}M4.2 11.8l7.6-7.6`,
  bad: 'M8 2.5 14 13H2ZM8 6.6v2.8M8 11.2h.01',
};

type Shown = Pick<Subscriber, 'state' | 'health' | 'failing_since' | 'events' | 'kind'>;

export function standingOf({ state, failing_since, events, kind }: Shown): readonly [Tone, string] {
  if (state === 'disabled') return ['bad', 'disabled'];
  if (state === 'paused') return ['quiet', 'paused'];
  if (failing_since !== null) return ['waits', 'failing'];
  if (kind === 'pull' && events.queued > 0) return ['waits', 'to be fetched'];
  return events.queued > 0 ? ['busy', 'delivering'] : ['well', 'up to date'];
}

export function SubscriberState({ subscriber }: { readonly subscriber: Shown }) {
  const [tone, word] = standingOf(subscriber);
  return (
    <span className="bus-state" data-tone={tone}>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={shapes[tone]} />
      </svg>
      {word}
    </span>
  );
}

/** Points of 100: one more for a success, two less for a failure. */
export function Health({ points }: { readonly points: number }) {
  return (
    <meter
      className="bus-health"
      min={0}
      max={100}
      low={50}
      high={80}
      optimum={100}
      value={points}
      title={`${points} of 100 points`}
    >
      {points}
    </meter>
  );
}
