/** The input of a task of a person: names over values where it is simple enough for that, otherwise JSON. */
import { isObject } from '../../kit/json/json-text.ts';
import { JsonView } from '../../kit/json/json-view.tsx';
import './answer-form.css';
import { titleOfName } from './answer-draft.ts';

const maxMembers = 20;

export function hasInput(input: unknown): boolean {
  return input != null && !(isObject(input) && Object.keys(input).length === 0);
}

export function InputView({ input }: { readonly input: unknown }) {
  const members = isObject(input) ? Object.entries(input) : undefined;
  const isSimple =
    members !== undefined && members.length <= maxMembers && members.every(([, value]) => isPlain(value));
  if (!isSimple) return <JsonView label="Input" value={input} />;
  return (
    <dl className="task-input">
      {members.map(([name, value]) => (
        <div key={name}>
          <dt>{titleOfName(name)}</dt>
          <dd>{wordsOf(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((item) => typeof item !== 'object');
  return typeof value !== 'object' || value === null;
}

function wordsOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(wordsOf).join(', ');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value === null) return '–';
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? value.toLocaleString('en', { maximumFractionDigits: 10 }) : JSON.stringify(value);
}
