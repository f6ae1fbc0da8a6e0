/** One row of a log: its number, which is a link to it, and its text in colour with what was looked for marked. */
import { type CSSProperties, memo } from 'react';
import { type Colour, piecesOf, type Style } from './ansi.ts';
import { marked } from './marked.ts';

interface Props {
  readonly line: number;
  readonly goesOn: boolean;
  readonly text: string;
  readonly style: Style;
  readonly pattern: RegExp | undefined;
  /** The current hit in this row. */
  readonly currentHit: number | undefined;
  readonly isLinked: boolean;
}

export const LogRow = memo(function LogRow({ line, goesOn, text, style, pattern, currentHit, isLinked }: Props) {
  return (
    <div className="log-row" data-linked={isLinked ? '' : undefined}>
      {/* out of the order of tabs, which would be endless: `:120` in the search box goes there by keyboard */}
      <a className="log-number" href={`#L${line}`} tabIndex={-1} aria-label={`Line ${line}`}>
        {goesOn ? '' : line}
      </a>
      <span className="log-line">
        {marked(piecesOf(text, style), pattern).map((piece, index) => (
          // pieces have no identity but their place
          <Span key={index} text={piece.text} style={piece.style} hit={piece.hit} currentHit={currentHit} />
        ))}
        {'\n'}
      </span>
    </div>
  );
});

interface SpanProps {
  readonly text: string;
  readonly style: Style;
  readonly hit: number | undefined;
  readonly currentHit: number | undefined;
}

function Span({ text, style, hit, currentHit }: SpanProps) {
  const look = lookOf(style);
  if (hit !== undefined) {
    return (
      <mark {...look} data-current={hit === currentHit ? '' : undefined}>
        {text}
      </mark>
    );
  }
  return look.className === undefined ? text : <span {...look}>{text}</span>;
}

/** The sixteen colours are classes; exact ones are handed to the style sheet, which keeps them readable. */
function lookOf({ ink, ground, ...flags }: Style): { className?: string; style?: CSSProperties } {
  const names = [classOf('ink', ink), classOf('ground', ground), ...Object.keys(flags)].filter((name) => name !== '');
  if (names.length === 0) return {};
  const className = names.map((name) => `ansi-${name}`).join(' ');
  const exact = Object.entries({ '--exact-ink': ink, '--exact-ground': ground }).filter(
    ([, colour]) => typeof colour === 'string',
  );
  return exact.length === 0 ? { className } : { className, style: Object.fromEntries(exact) };
}

function classOf(kind: 'ink' | 'ground', colour: Colour | undefined): string {
  if (colour === undefined) return '';
  return typeof colour === 'string' ? `exact-${kind}` : `${kind}-${colour % 8}${colour > 7 ? ' ansi-bright' : ''}`;
}
