/** The name of a tenant. Invalid names are reported while the user types; the server decides. */
import { Field } from '../kit/field.tsx';
import { nameFault } from './name-fault.ts';

interface Props {
  readonly value: string;
  readonly change: (name: string) => void;
  readonly hint?: string;
}

export function NameField({ value, change, hint }: Props) {
  return (
    <Field label="Name" hint={hint} fault={value === '' ? undefined : nameFault(value)}>
      {(wiring) => (
        <input
          {...wiring}
          className="input"
          value={value}
          maxLength={63}
          spellCheck={false}
          autoCapitalize="none"
          autoComplete="off"
          onChange={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
