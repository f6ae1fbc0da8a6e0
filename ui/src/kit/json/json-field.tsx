/** A field for JSON, with the place of its fault. */
import type { ReactNode } from 'react';
import { Field } from '../field.tsx';
import type { ParsedJson } from './json-text.ts';

interface Props {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly text: string;
  readonly parsed: ParsedJson;
  readonly change: (text: string) => void;
  readonly rows?: number;
  readonly placeholder?: string;
}

export function JsonField({ label, hint, text, parsed, change, rows = 5, placeholder }: Props) {
  return (
    <Field label={label} hint={hint} fault={parsed.ok ? undefined : parsed.fault}>
      {(wiring) => (
        <textarea
          {...wiring}
          className="input code"
          rows={rows}
          value={text}
          placeholder={placeholder}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
