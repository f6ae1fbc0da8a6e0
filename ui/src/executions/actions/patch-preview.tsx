/** What a patch would do: steps that differ, visits that would be cancelled, and timers that would go. */
import type { TenantAnswer } from '../../client.ts';
import '../../document/document.css';
import { Failure } from '../../kit/failure.tsx';
import type { Node } from '../use-executions.ts';

type Patched = TenantAnswer<'PATCH /api/executions/{id}'>;

interface Props {
  readonly preview: { readonly data: Patched | undefined; readonly error: Error | null; readonly isAsked: boolean };
  readonly nodes: readonly Node[];
  readonly isEmpty: boolean;
}

const maxShown = 40;

export function PatchPreview({ preview: { data, error, isAsked }, nodes, isEmpty }: Props) {
  if (isEmpty || !isAsked) return <p className="note">Set fields or change the step to see what the patch does.</p>;
  if (error !== null) return <Failure error={error} />;
  if (data === undefined) return <p className="note">Checking…</p>;
  const { tree, cancelled, timers_removed: timers } = data.diff;
  const names = new Map(nodes.map(({ id, verb, name, path }) => [id, `${verb} ${name ?? path}`]));
  return (
    <section className="preview" aria-label="What the patch does">
      {tree.length === 0 ? <p>No step changes.</p> : <Steps tree={tree} />}
      {cancelled.length === 0 ? null : (
        <div>
          <strong>Cancelled now</strong>
          <ul>
            {cancelled.slice(0, maxShown).map((id) => (
              <li key={id}>
                {names.get(id) ?? ''} <code>{id}</code>
              </li>
            ))}
            {cancelled.length > maxShown ? <li className="muted">and {cancelled.length - maxShown} more</li> : null}
          </ul>
        </div>
      )}
      {timers.length === 0 ? null : (
        <p>
          <strong>Timers removed</strong> {timers.slice(0, maxShown).join(', ')}
        </p>
      )}
    </section>
  );
}

function Steps({ tree }: { readonly tree: Patched['diff']['tree'] }) {
  return (
    <ul className="changes">
      {tree.slice(0, maxShown).map(({ path, from, to }) => (
        <li key={path} data-change={from === null ? 'added' : to === null ? 'removed' : 'changed'}>
          <span aria-hidden="true">{from === null ? '+' : to === null ? '−' : '~'}</span>
          <span>
            <code>{path}</code> {from === null ? null : <del>{from}</del>} {to === null ? null : <ins>{to}</ins>}
          </span>
        </li>
      ))}
      {tree.length > maxShown ? <li className="muted">and {tree.length - maxShown} more</li> : null}
    </ul>
  );
}
