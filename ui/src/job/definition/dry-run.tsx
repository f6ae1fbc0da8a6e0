/** Describes what saving would do: changes of the document, and what fires at once. */
import { SetOff } from '../../actions/set-off.tsx';
import type { Applied } from './use-job-check.ts';

type Change = Applied['changes'][number];

const marks = { added: '+', removed: '−', changed: '~' } as const;
const maxChanges = 60;

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
          {changes.slice(0, maxChanges).map((change) => (
            <ChangeLine key={`${change.change} ${change.path}`} change={change} />
          ))}
          {changes.length > maxChanges ? <li className="muted">… and {changes.length - maxChanges} more</li> : null}
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
        <code>{path}</code> {before === undefined ? null : <del>{shorten(before)}</del>}{' '}
        {after === undefined ? null : <ins>{shorten(after)}</ins>}
      </span>
    </li>
  );
}

const maxLength = 120;

function shorten(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}
