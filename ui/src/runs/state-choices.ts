/** The filters of a list of runs, as in the address (`?state=`). An unknown value means all. */
export const stateChoices = [
  { value: '', label: 'All' },
  { value: 'unfinished', label: 'Under way', states: 'active,running' },
  { value: 'running', label: 'Running', states: 'running' },
  { value: 'active', label: 'Ready', states: 'active' },
  { value: 'failed', label: 'Failed', states: 'failure,timeout,error' },
  { value: 'success', label: 'Succeeded', states: 'success' },
  { value: 'cancelled', label: 'Cancelled', states: 'cancelled' },
] as const;

interface StateChoice {
  readonly value: (typeof stateChoices)[number]['value'];
  /** As the server asks for them; undefined for all. */
  readonly states: string | undefined;
}

export function stateChoice(asked: string | undefined): StateChoice {
  const choice = stateChoices.find(({ value }) => value === asked);
  return choice === undefined || choice.value === ''
    ? { value: '', states: undefined }
    : { value: choice.value, states: choice.states };
}
