/** Shows whether the page is live, as text; the dot only repeats it. Shows nothing if there is no data on the page. */
import { useAccess } from '../tenants/access.tsx';
import type { LiveState } from './change-stream.ts';
import { useLiveState } from './live.tsx';

const words: Readonly<Record<LiveState, string>> = { connecting: 'Connecting', live: 'Live', lost: 'Reconnecting' };

export function LiveStatus() {
  const state = useLiveState();
  const access = useAccess().state;
  if (access === 'missing' || (access === 'closed' && state !== 'live')) return null;
  return (
    <p className="live-status" data-state={state} role="status">
      <span className="live-dot" aria-hidden="true" />
      {words[state]}
    </p>
  );
}
