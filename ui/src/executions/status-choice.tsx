/** The statuses of executions to show. Two statuses of an address that has been typed in stay chosen, without a button. */
import { Choice } from '../kit/choice.tsx';
import { statusChoices } from './status-choices.ts';

interface Props {
  readonly value: string;
  readonly change: (value: string) => void;
}

export function StatusChoice({ value, change }: Props) {
  const isListed = statusChoices.some((choice) => choice.value === value);
  const options = isListed ? statusChoices : [...statusChoices, { value, label: value.split(',').join(', ') }];
  return (
    <div className="state-choice">
      <Choice label="Which executions" options={options} value={value} change={change} />
    </div>
  );
}
