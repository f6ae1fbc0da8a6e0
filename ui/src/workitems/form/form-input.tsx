/** One field of a form. Yes or no, and few choices, are buttons in sight; a fault is told to screen readers, too. */
import { useId } from 'react';
import { Field } from '../../kit/field.tsx';
import { type FormField, isRequired, titleOfName } from './answer-draft.ts';

interface Props {
  readonly field: FormField;
  readonly value: string;
  readonly fault: string | undefined;
  readonly change: (value: string) => void;
}

/** More choices than this are a list to open. */
const maxButtons = 5;

export function FormInput(props: Props) {
  const { field, fault } = props;
  const isButtons = field.type === 'boolean' || (field.type === 'choice' && field.choices.length <= maxButtons);
  return (
    <div data-fault={fault === undefined ? undefined : ''}>
      {isButtons ? <Buttons {...props} /> : <Line {...props} />}
    </div>
  );
}

function labelOf(field: FormField): string {
  const label = field.label === field.name ? titleOfName(field.name) : field.label;
  return isRequired(field) ? label : `${label} (optional)`;
}

const yesNo = [
  ['true', 'Yes'],
  ['false', 'No'],
] as const;

function Buttons({ field, value, fault, change }: Props) {
  const id = useId();
  const options =
    field.type === 'boolean' ? yesNo : field.choices.map((choice) => [String(choice), String(choice)] as const);
  return (
    <fieldset className="field answer-choice" aria-describedby={fault === undefined ? undefined : `${id}-fault`}>
      <legend>{labelOf(field)}</legend>
      <div className="answer-options">
        {options.map(([option, label]) => (
          <label key={option}>
            <input type="radio" name={id} value={option} checked={option === value} onChange={() => change(option)} />
            {label}
          </label>
        ))}
        {isRequired(field) || value === '' ? null : (
          <button type="button" className="button bare" onClick={() => change('')}>
            Clear
          </button>
        )}
      </div>
      {fault === undefined ? null : (
        <p id={`${id}-fault`} className="field-fault">
          {fault}
        </p>
      )}
    </fieldset>
  );
}

function Line({ field, value, fault, change }: Props) {
  return (
    <Field label={labelOf(field)} fault={fault}>
      {(wiring) => {
        const shared = { ...wiring, className: 'input', value, 'aria-required': isRequired(field) };
        if (field.type === 'choice') {
          return (
            <select {...shared} onChange={(event) => change(event.currentTarget.value)}>
              <option value="" />
              {field.choices.map((choice) => (
                <option key={String(choice)}>{String(choice)}</option>
              ))}
            </select>
          );
        }
        if (field.type === 'text')
          return <textarea {...shared} rows={3} onChange={(event) => change(event.currentTarget.value)} />;
        const isDate = field.type === 'date';
        return (
          <input
            {...shared}
            type={isDate ? 'date' : 'text'}
            inputMode={isDate ? undefined : field.type === 'integer' ? 'numeric' : 'decimal'}
            autoComplete="off"
            onChange={(event) => change(event.currentTarget.value)}
          />
        );
      }}
    </Field>
  );
}
