/** The labels of an execution. Each leads to the executions that have it, too. */
import { Link } from 'wouter';

/** Further ones are counted only. */
const maxShown = 4;

export function Labels({ labels }: { readonly labels: Readonly<Record<string, string>> }) {
  const all = Object.entries(labels);
  if (all.length === 0) return null;
  return (
    <span className="labels">
      {all.slice(0, maxShown).map(([name, value]) => (
        <Link key={name} className="tag" href={`/executions?label=${encodeURIComponent(`${name}:${value}`)}`}>
          <span className="muted">{name}</span> {value}
        </Link>
      ))}
      {all.length > maxShown ? <span className="muted">and {all.length - maxShown} more</span> : null}
    </span>
  );
}
