/** Faults or warnings beside the editor; each links to its line. */
import type { PlacedFault } from './fault-places.ts';

interface Props {
  readonly title: string;
  readonly kind: 'fault' | 'warning';
  readonly faults: readonly PlacedFault[];
  readonly goTo: (at: number) => void;
}

export function FaultList({ title, kind, faults, goTo }: Props) {
  if (faults.length === 0) return null;
  return (
    <section className="fault-list" data-kind={kind}>
      <h2>{title}</h2>
      <ul>
        {faults.map((fault) => (
          <li key={`${fault.from} ${fault.path} ${fault.message}`}>
            <button type="button" onClick={() => goTo(fault.from)}>
              Line {fault.line}
            </button>
            <span>
              {fault.path === '' ? null : <code>{fault.path}</code>} {fault.message}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
