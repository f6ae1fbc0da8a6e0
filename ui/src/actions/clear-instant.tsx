/** Clears an instant. */
interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
  readonly instant: string;
}

export function ClearInstantAction(props: Props) {
  return props === undefined ? null : null;
}
