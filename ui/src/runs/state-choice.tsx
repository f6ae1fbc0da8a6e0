/** The filter of runs by state. On a phone its choices take two lines. */
import { Choice } from '../kit/choice.tsx';
import './runs.css';
import { stateChoices } from './state-choices.ts';

interface Props {
  readonly value: string;
  readonly change: (value: string) => void;
}

export function StateChoice({ value, change }: Props) {
  return (
    <div className="state-choice">
      <Choice label="Which runs" options={stateChoices} value={value} change={change} />
    </div>
  );
}
