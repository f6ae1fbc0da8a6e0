/** The incidents of an execution: which step failed and since when, with what an operator can do about it. */
import { useMemo } from 'react';
import { Link } from 'wouter';
import { useMayOperate } from '../session/session.ts';
import { Age } from '../time/times.tsx';
import { RetryAction, SkipAction } from './actions/node-actions.tsx';
import { makeStepNames } from './step-names.ts';
import type { Execution } from './use-executions.ts';

const maxShown = 5;

export function Incidents({ execution: { id, incidents, tree } }: { readonly execution: Execution }) {
  const names = useMemo(() => makeStepNames(tree), [tree]);
  const mayOperate = useMayOperate();
  if (incidents.length === 0) return null;
  return (
    <section className="incidents" aria-label="Incidents">
      <ul>
        {incidents.slice(0, maxShown).map(({ node, path, code, message, since }) => (
          <li key={node}>
            <span className="incident-what">
              <Link href={`/executions/${id}?node=${encodeURIComponent(node)}`} title={path}>
                {names.ofNode(node).title || path}
              </Link>{' '}
              failed <Age at={since} />: <strong>{code}</strong> {message === code ? '' : message}
            </span>
            {mayOperate ? (
              <span className="incident-actions">
                <SkipAction execution={id} node={node} />
                <RetryAction execution={id} node={node} />
              </span>
            ) : null}
          </li>
        ))}
      </ul>
      {incidents.length > maxShown ? (
        <p className="muted">and {(incidents.length - maxShown).toLocaleString('en')} more, marked in the steps</p>
      ) : null}
    </section>
  );
}
