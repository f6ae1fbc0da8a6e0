/** The axis of a timeline: spans since its beginning, and marks where a pause is folded. */
import { formatSpan } from '../../time/format.ts';
import type { Scale } from './scale.ts';

export function TimeAxis({ scale }: { readonly scale: Scale }) {
  return (
    <div className="timeline-axis" aria-hidden="true">
      {scale.ticks.map(({ at, sinceStart }) => (
        <span key={at} className="timeline-tick" style={{ left: `${scale.place(at) * 100}%` }}>
          {sinceStart === 0 ? '0' : formatSpan(sinceStart)}
        </span>
      ))}
      {scale.stretches
        .filter(({ folded }) => folded)
        .map(({ from, to, start, end }) => (
          <span
            key={from}
            className="timeline-fold"
            title={`${formatSpan(to - from)} in which nothing ran`}
            style={{ left: `${start * 100}%`, width: `${(end - start) * 100}%` }}
          />
        ))}
    </div>
  );
}
