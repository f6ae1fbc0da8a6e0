/** A labelled input of a form, with a hint and the fault of its value. */
import { type ReactNode, useId } from 'react';
import './field.css';

interface Wiring {
  readonly id: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
}

interface Props {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly fault?: string | undefined;
  /** The input, which must take these. */
  readonly children: (wiring: Wiring) => ReactNode;
}

export function Field({ label, hint, fault, children }: Props) {
  const id = useId();
  const note = `${id}-note`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': note, 'aria-invalid': fault !== undefined })}
      <p id={note} className={fault === undefined ? 'field-hint' : 'field-fault'}>
        {fault ?? hint}
      </p>
    </div>
  );
}

interface SelectProps<T extends string> {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly label: string }[];
  readonly change: (value: T) => void;
}

export function SelectField<T extends string>({ label, hint, value, options, change }: SelectProps<T>) {
  return (
    <Field label={label} hint={hint}>
      {(wiring) => (
        <select
          {...wiring}
          className="input"
          value={value}
          onChange={(event) => {
            const chosen = options.find((option) => option.value === event.currentTarget.value);
            if (chosen !== undefined) change(chosen.value);
          }}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
