/** Fires a range of instants again. */
interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

export function BackfillAction(props: Props) {
  return props === undefined ? null : null;
}
