/** What saving would do, in words: what changes in the document, and what fires at once. */
import { SetOff } from '../../actions/set-off.tsx';
import type { Applied } from './use-check.ts';

type Change = Applied['changes'][number];

const marks = { added: '+', removed: '−', changed: '~' } as const;
const mostChanges = 60;

function headline({ outcome, changes, version }: Applied): string {
  if (outcome === 'created') return 'A new job';
  return `${changes.length === 1 ? '1 change' : `${changes.length} changes`}, as version ${version}`;
}

export function DryRun({ answer, isCurrent }: { readonly answer: Applied; readonly isCurrent: boolean }) {
  const { outcome, changes, outlook } = answer;
  if (outcome === 'unchanged') return null;
  return (
    <section className="dry-run" aria-busy={!isCurrent}>
      <h2>{headline(answer)}</h2>
      {outcome === 'changed' ? (
        <ul className="changes">
          {changes.slice(0, mostChanges).map((change) => (
            <ChangeLine key={`${change.change} ${change.path}`} change={change} />
          ))}
          {changes.length > mostChanges ? <li className="muted">… and {changes.length - mostChanges} more</li> : null}
        </ul>
      ) : null}
      {outlook === undefined ? null : (
        <>
          <h2>What fires</h2>
          <SetOff outlook={outlook} />
        </>
      )}
    </section>
  );
}

function ChangeLine({ change: { path, change, before, after } }: { readonly change: Change }) {
  return (
    <li data-change={change}>
      <span aria-hidden="true">{marks[change]}</span>
      <span>
        <span className="unseen">{change} </span>
        <code>{path}</code> {before === undefined ? null : <del>{short(before)}</del>}{' '}
        {after === undefined ? null : <ins>{short(after)}</ins>}
      </span>
    </li>
  );
}

const longest = 120;

function short(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}
