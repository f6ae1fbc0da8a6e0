/** A JSON value to read. A long one is shortened until a user asks for all of it; sealed values are dots, with what that means. */
import { useMemo, useState } from 'react';
import './json-view.css';

/** Characters of a value that are drawn at once. */
const maxCharacters = 20_000;
const sealedMark = '•••';

interface Props {
  /** For screen readers: what the value is. */
  readonly label: string;
  readonly value: unknown;
}

export function JsonView({ label, value }: Props) {
  const [showsAll, setShowsAll] = useState(false);
  const text = useMemo(() => JSON.stringify(value, undefined, 2) ?? 'null', [value]);
  if (value === sealedMark) return <Sealed />;
  const isLong = text.length > maxCharacters;
  return (
    <div className="json-view">
      <pre tabIndex={0} role="region" aria-label={label}>
        {isLong && !showsAll ? `${text.slice(0, maxCharacters)}…` : text}
      </pre>
      {isLong && !showsAll ? (
        <button type="button" className="button" onClick={() => setShowsAll(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </button>
      ) : null}
    </div>
  );
}

function Sealed() {
  return (
    <p
      className="json-sealed"
      title="The document seals this field: it is stored encrypted, and only tasks see its value"
    >
      {sealedMark} <span className="muted">sealed</span>
    </p>
  );
}
