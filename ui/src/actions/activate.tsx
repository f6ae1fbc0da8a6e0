/** Runs one task at one instant. */
interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
  readonly task: { readonly id: string; readonly name: string };
  readonly instant: string;
}

export function ActivateAction(props: Props) {
  return props === undefined ? null : null;
}
