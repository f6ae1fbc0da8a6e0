/** A banner while the server is away: the data below may be old. Short interruptions are not shown. */
import { useEffect, useState } from 'react';
import { useLiveState } from './live.tsx';

const patienceMs = 2_000;

export function LostBanner() {
  const isLost = useLiveState() === 'lost';
  const [isShown, show] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => show(isLost), isLost ? patienceMs : 0);
    return () => clearTimeout(timer);
  }, [isLost]);
  if (!isShown) return null;
  return (
    <p className="lost-banner" role="alert">
      The server cannot be reached. This page may be out of date. It reconnects by itself when the server is back.
    </p>
  );
}
