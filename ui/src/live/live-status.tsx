/** Says whether what one sees is live: in words, the dot only repeats it. */
import type { FeedState } from './feed.ts';
import { useFeed } from './live.tsx';

const words: Readonly<Record<FeedState, string>> = { connecting: 'Connecting', live: 'Live', lost: 'Reconnecting' };

export function LiveStatus() {
  const { state } = useFeed();
  return (
    <p className="live-status" data-state={state} role="status">
      <span className="live-dot" aria-hidden="true" />
      {words[state]}
    </p>
  );
}
