/** Parameters of a run: one field for each parameter of the document, and one for others as JSON. */
import { Field } from '../kit/field.tsx';
import { type ParamsDraft, faultOf, type Json } from './params.ts';

interface Props {
  readonly standard: Readonly<Record<string, Json>>;
  readonly draft: ParamsDraft;
  readonly change: (draft: ParamsDraft) => void;
}

export function ParamsField({ standard, draft, change }: Props) {
  const names = Object.keys(standard);
  return (
    <>
      {names.length === 0 ? null : (
        <div className="fields">
          {names.map((name) => (
            <ParamLine
              key={name}
              name={name}
              standard={standard[name] ?? null}
              text={draft.known[name] ?? ''}
              change={(text) => change({ ...draft, known: { ...draft.known, [name]: text } })}
            />
          ))}
        </div>
      )}
      <Field
        label={names.length === 0 ? 'Parameters, as JSON' : 'Other parameters, as JSON'}
        hint="Optional; used for {{params.x}} in the tasks of the job"
        fault={faultOf(draft.others)}
      >
        {(wiring) => (
          <textarea
            {...wiring}
            className="input code"
            rows={2}
            value={draft.others}
            placeholder='{"region": "north"}'
            spellCheck={false}
            onChange={(event) => change({ ...draft, others: event.currentTarget.value })}
          />
        )}
      </Field>
    </>
  );
}

interface LineProps {
  readonly name: string;
  readonly standard: Json;
  readonly text: string;
  readonly change: (text: string) => void;
}

function ParamLine({ name, standard, text, change }: LineProps) {
  const isText = typeof standard === 'string';
  const usual = isText ? standard : JSON.stringify(standard);
  return (
    <Field
      label={name}
      hint={text === usual ? 'as in the document' : `in the document: ${usual}`}
      fault={isText ? undefined : faultOf(text, 'any')}
    >
      {(wiring) => (
        <input
          {...wiring}
          className="input code"
          value={text}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
