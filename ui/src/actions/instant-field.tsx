/** A field for an instant in UTC. The hint below shows it in the browser's time zone. */
import { Field } from '../kit/field.tsx';
import { formatLocal } from '../time/format.ts';
import { parseInstant } from './instant-text.ts';

/** No hint for a browser in UTC. */
function localHint(at: string): string | undefined {
  return new Date(at).getTimezoneOffset() === 0 ? undefined : `${formatLocal(at)} local time`;
}

interface Props {
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
  /** The meaning of an empty field; without it a time is required. */
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
      fault={fault ?? (wrong ? 'Enter a time such as 2026-01-31 06:00' : undefined)}
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
