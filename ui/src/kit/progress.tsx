/** A progress bar, with the numbers as text for screen readers. */
import './progress.css';

interface Part {
  readonly name: string;
  readonly count: number;
  /** The colour of a state; plain without one. */
  readonly state?: string;
}

interface Props {
  readonly label: string;
  readonly total: number;
  readonly parts: readonly Part[];
}

export function Progress({ label, total, parts }: Props) {
  const done = parts.reduce((sum, part) => sum + part.count, 0);
  const words = parts.map((part) => `${part.count} ${part.name}`).join(', ');
  return (
    <div className="progress-line">
      <span className="progress-label">{label}</span>
      <div
        className="progress"
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={Math.min(done, total)}
        aria-valuetext={`${words} of ${total}`}
        title={`${words} of ${total}`}
      >
        {parts.map((part) => (
          <span
            key={part.name}
            data-state={part.state}
            style={{ width: `${total === 0 ? 0 : Math.min(100, (100 * part.count) / total)}%` }}
          />
        ))}
      </div>
    </div>
  );
}
