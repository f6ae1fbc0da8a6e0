/** The document a job was made from; JSON is laid out and its parts told apart, anything else is shown as it is. */
import { useMemo } from 'react';

const longestColoured = 100_000;
const parts = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

interface Piece {
  readonly at: number;
  readonly text: string;
  readonly kind?: 'key' | 'text' | 'value';
}

function layOut(text: string): { text: string; isJson: boolean } {
  try {
    return { text: JSON.stringify(JSON.parse(text), null, 2), isJson: true };
  } catch {
    return { text, isJson: false };
  }
}

function piecesOf(json: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of json.matchAll(parts)) {
    const [whole, quoted, colon] = match;
    const text = quoted ?? whole;
    if (match.index > end) pieces.push({ at: end, text: json.slice(end, match.index) });
    pieces.push({ at: match.index, text, kind: quoted === undefined ? 'value' : colon === undefined ? 'text' : 'key' });
    end = match.index + text.length;
  }
  return [...pieces, { at: end, text: json.slice(end) }];
}

export function JobDocument({ text, version }: { readonly text: string; readonly version: number }) {
  const pieces = useMemo(() => {
    const laidOut = layOut(text);
    const isPlain = !laidOut.isJson || laidOut.text.length > longestColoured;
    return isPlain ? [{ at: 0, text: laidOut.text }] : piecesOf(laidOut.text);
  }, [text]);
  return (
    <section aria-label={`Document, version ${version}`}>
      {/* a region that scrolls must be reachable by keyboard */}
      <pre className="document" tabIndex={0}>
        {pieces.map(({ at, text, kind }: Piece) =>
          kind === undefined ? (
            text
          ) : (
            <span key={at} className={`json-${kind}`}>
              {text}
            </span>
          ),
        )}
      </pre>
    </section>
  );
}
