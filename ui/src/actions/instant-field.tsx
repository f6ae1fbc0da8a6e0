/** A field for an instant. What is typed is UTC; below it stands what that is on the reader's own clock. */
import { Field } from '../kit/field.tsx';
import { formatLocal } from '../time/format.ts';
import { parseInstant } from './instant-text.ts';

/** Who lives in UTC need not be told twice. */
function localHint(at: string): string | undefined {
  return new Date(at).getTimezoneOffset() === 0 ? undefined : `${formatLocal(at)} where you are`;
}

interface Props {
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
  /** What an empty field means; without it a time must be given. */
  readonly empty?: string;
  readonly fault?: string | undefined;
}

export function InstantField({ label, value, change, empty, fault }: Props) {
  const parsed = parseInstant(value);
  const isEmpty = value.trim() === '';
  const wrong = parsed === undefined && !(isEmpty && empty !== undefined);
  const hint = parsed === undefined ? empty : localHint(parsed);
  return (
    <Field
      label={`${label} (UTC)`}
      hint={hint}
      fault={fault ?? (wrong ? 'Write a time such as 2026-01-31 06:00' : undefined)}
    >
      {(wiring) => (
        <input
          {...wiring}
          className="input code"
          value={value}
          placeholder="2026-01-31 06:00"
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
