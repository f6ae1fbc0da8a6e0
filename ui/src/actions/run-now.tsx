/** Runs a job now, with parameters. */
interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

export function RunNowAction(props: Props) {
  return props === undefined ? null : null;
}
