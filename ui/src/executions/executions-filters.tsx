/** The fields of the search: flow, key, label and times. They take effect a moment after the last key. */
import { useEffect, useEffectEvent, useState } from 'react';
import { InstantField } from '../actions/instant-field.tsx';
import { useFlows } from '../flows/use-flows.ts';
import { Field, SelectField } from '../kit/field.tsx';
import { useSettled } from '../kit/settled.ts';
import type { Asked } from './use-address.ts';

interface Props {
  readonly asked: Asked;
  readonly change: (values: Partial<Asked>) => void;
}

export function ExecutionsFilters({ asked, change }: Props) {
  const isMore = asked.label !== '' || asked.key !== '' || asked.after !== '' || asked.before !== '';
  return (
    <details className="execution-filters" open={isMore || asked.flow !== ''}>
      <summary>Search</summary>
      <div className="fields">
        <FlowField value={asked.flow} change={(flow) => change({ flow })} />
        <SettledField label="Key" value={asked.key} change={(key) => change({ key })} hint="The whole key" />
        <SettledField
          label="Label"
          value={asked.label}
          change={(label) => change({ label })}
          hint="name:value"
          fault={
            asked.label !== '' && asked.label.indexOf(':') < 1 ? 'Enter a name and a value: customer:12' : undefined
          }
        />
        <InstantField
          label="Started after"
          value={asked.after}
          change={(after) => change({ after })}
          empty="Leave empty for any time"
        />
        <InstantField
          label="Started before"
          value={asked.before}
          change={(before) => change({ before })}
          empty="Leave empty for any time"
        />
      </div>
      {asked.parent === '' ? null : (
        <p className="note">
          Only executions that <code>{asked.parent}</code> has called.{' '}
          <button type="button" className="button" onClick={() => change({ parent: '' })}>
            Show all
          </button>
        </p>
      )}
    </details>
  );
}

function FlowField({ value, change }: { readonly value: string; readonly change: (flow: string) => void }) {
  const names = (useFlows().data ?? []).map(({ name }) => name);
  const known = value === '' || names.includes(value) ? names : [value, ...names];
  const options = [{ value: '', label: 'all flows' }, ...known.map((name) => ({ value: name, label: name }))];
  return <SelectField label="Flow" value={value} options={options} change={change} />;
}

const settleMs = 300;

interface SettledProps {
  readonly label: string;
  readonly value: string;
  readonly hint: string;
  readonly fault?: string | undefined;
  readonly change: (value: string) => void;
}

/** What is typed goes into the address once it has settled; an address that is opened goes into the field. */
function SettledField({ label, value, hint, fault, change }: SettledProps) {
  const [text, setText] = useState(value);
  const settled = useSettled(text, settleMs);
  const report = useEffectEvent((next: string) => {
    if (next !== value) change(next);
  });
  const adopt = useEffectEvent((next: string) => {
    if (settled === text) setText(next);
  });
  useEffect(() => report(settled), [settled]);
  useEffect(() => adopt(value), [value]);
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(wiring) => (
        <input
          {...wiring}
          className="input"
          value={text}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
