/** The taken places of a worker, in figures and as a bar. */
import './fleet.css';

export function Places({ taken, all }: { readonly taken: number; readonly all: number }) {
  const part = all === 0 ? 0 : Math.min(1, taken / all);
  return (
    <span className="places-taken">
      <span className="places-bar" aria-hidden="true" data-full={part === 1 ? '' : undefined}>
        <span style={{ width: `${part * 100}%` }} />
      </span>
      <span>
        {taken} of {all}
      </span>
    </span>
  );
}
