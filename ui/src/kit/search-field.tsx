/** A search box with its label in reach of a screen reader, and room for nothing else. */
import { useId } from 'react';

interface Props {
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
}

export function SearchField({ label, value, change }: Props) {
  const id = useId();
  return (
    <search className="search-field">
      <label htmlFor={id} className="unseen">
        {label}
      </label>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14" />
      </svg>
      <input
        id={id}
        type="search"
        value={value}
        placeholder={label}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => change(event.currentTarget.value)}
      />
    </search>
  );
}
