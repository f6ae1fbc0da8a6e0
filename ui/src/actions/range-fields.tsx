/** A range of instants, both ends inclusive, with presets. */
import { Choice } from '../kit/choice.tsx';
import { InstantField } from './instant-field.tsx';
import { instantText, parseInstant } from './instant-text.ts';

export interface Range {
  readonly first: string;
  readonly last: string;
}

const hourMs = 3_600_000;
const presets = [
  { value: '24', label: 'Last 24 hours' },
  { value: '168', label: 'Last 7 days' },
  { value: '720', label: 'Last 30 days' },
] as const;

export function rangeOfLast(hours: number, nowMs: number): Range {
  return { first: instantText(nowMs - hours * hourMs), last: instantText(nowMs) };
}

/** Undefined while the two fields do not form a range. */
export function parseRange({ first, last }: Range): Range | undefined {
  const [from, to] = [parseInstant(first), parseInstant(last)];
  return from === undefined || to === undefined || from > to ? undefined : { first: from, last: to };
}

interface Props {
  readonly range: Range;
  readonly change: (range: Range) => void;
}

export function RangeFields({ range, change }: Props) {
  const [first, last] = [parseInstant(range.first), parseInstant(range.last)];
  const isBackwards = first !== undefined && last !== undefined && first > last;
  const chosen = presets.find(({ value }) => {
    const preset = rangeOfLast(Number(value), Date.now());
    return preset.first === range.first && preset.last === range.last;
  });
  return (
    <>
      <Choice
        label="Presets"
        options={presets}
        value={chosen?.value ?? ''}
        change={(hours) => change(rangeOfLast(Number(hours), Date.now()))}
      />
      <div className="fields">
        <InstantField label="First instant" value={range.first} change={(text) => change({ ...range, first: text })} />
        <InstantField
          label="Last instant"
          value={range.last}
          change={(text) => change({ ...range, last: text })}
          fault={isBackwards ? 'Must not be before the first instant' : undefined}
        />
      </div>
    </>
  );
}
