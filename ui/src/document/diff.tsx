/** A difference between two texts, in one column or in two. Signs and words say what the colours say. */
import { useMemo } from 'react';
import './diff.css';
import { type Hunk, hunksOf, type Row, rowsOf } from './hunks.ts';
import { type DiffLine, diffLines } from './line-diff.ts';

interface Props {
  readonly before: string;
  readonly after: string;
  readonly isSideBySide: boolean;
}

export function Diff({ before, after, isSideBySide }: Props) {
  const diff = useMemo(() => diffLines(before, after), [before, after]);
  const hunks = useMemo(() => hunksOf(diff), [diff]);
  const count = (kind: DiffLine['kind']) => diff.filter((line) => line.kind === kind).length;
  const [added, removed] = [count('added'), count('removed')];
  if (added + removed === 0) return <p className="note">The two documents are the same.</p>;
  return (
    <>
      <p className="muted">
        {added === 1 ? '1 line' : `${added} lines`} added, {removed} removed
      </p>
      <section className="diff" tabIndex={0} aria-label="Differences">
        <table>
          {hunks.map((hunk, i) => (
            <HunkBody key={`${hunk.lines[0]?.before} ${hunk.lines[0]?.after} ${i}`} hunk={hunk} side={isSideBySide} />
          ))}
        </table>
      </section>
    </>
  );
}

function HunkBody({ hunk: { skipped, lines }, side }: { readonly hunk: Hunk; readonly side: boolean }) {
  return (
    <tbody>
      {skipped === 0 ? null : (
        <tr className="diff-gap">
          <td colSpan={4}>{skipped === 1 ? '1 unchanged line' : `${skipped} unchanged lines`}</td>
        </tr>
      )}
      {side
        ? rowsOf(lines).map((row) => <SideRow key={`${row.left?.before} ${row.right?.after}`} row={row} />)
        : lines.map((line) => <UnifiedRow key={`${line.before} ${line.after}`} line={line} />)}
    </tbody>
  );
}

function UnifiedRow({ line }: { readonly line: DiffLine }) {
  return (
    <tr>
      <td className="diff-number">{line.before}</td>
      <td className="diff-number">{line.after}</td>
      <Code line={line} />
    </tr>
  );
}

function SideRow({ row: { left, right } }: { readonly row: Row }) {
  return (
    <tr>
      <td className="diff-number">{left?.before}</td>
      <Code line={left} />
      <td className="diff-number">{right?.after}</td>
      <Code line={right} />
    </tr>
  );
}

const signs = { same: ' ', removed: '−', added: '+' } as const;

function Code({ line }: { readonly line: DiffLine | undefined }) {
  if (line === undefined) return <td className="diff-nothing" />;
  return (
    <td className="diff-code" data-kind={line.kind}>
      <span aria-hidden="true">{signs[line.kind]} </span>
      {line.kind === 'same' ? null : <span className="unseen">{line.kind} </span>}
      {line.text}
    </td>
  );
}
