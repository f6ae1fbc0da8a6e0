/** The priority of runs when places are scarce. */
import { SelectField } from '../kit/field.tsx';

export type Priority = 'backfill' | 'low' | 'normal' | 'high';

const options = [
  { value: 'high', label: 'high' },
  { value: 'normal', label: 'normal' },
  { value: 'low', label: 'low' },
  { value: 'backfill', label: 'backfill (after all others)' },
] as const satisfies readonly { value: Priority; label: string }[];

interface Props {
  readonly value: Priority;
  readonly change: (value: Priority) => void;
}

export function PriorityField({ value, change }: Props) {
  return <SelectField label="Priority" value={value} options={options} change={change} />;
}
