/** Times on a page: how long ago, how long it takes, and an instant. The exact time is in the tooltip. */
import { useNow } from './clock.ts';
import { formatAge, formatDue, formatInstant, formatLocal, formatSpan } from './format.ts';

export function Age({ at }: { readonly at: string }) {
  const now = useNow('fewSeconds');
  return (
    <time dateTime={at} title={formatLocal(at)}>
      {formatAge(at, now)}
    </time>
  );
}

/** How long until then. */
export function Due({ at }: { readonly at: string }) {
  const now = useNow('second');
  return (
    <time dateTime={at} title={formatLocal(at)}>
      {formatDue(at, now)}
    </time>
  );
}

export function Instant({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={formatLocal(at)} className="instant">
      {formatInstant(at)}
    </time>
  );
}

/** From one time to another, or up to now while there is no other. */
export function Span({ from, to }: { readonly from: string; readonly to: string | null }) {
  return to === null ? <GrowingSpan from={from} /> : <>{formatSpan(Date.parse(to) - Date.parse(from))}</>;
}

/** Ticks in whole seconds. */
function GrowingSpan({ from }: { readonly from: string }) {
  const ms = useNow('second') - Date.parse(from);
  return <>{ms < 10_000 ? `${Math.max(0, Math.floor(ms / 1_000))}s` : formatSpan(ms)}</>;
}
