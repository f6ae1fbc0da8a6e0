/** Runs again what failed. */
interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
  /** Only of this instant; without one, of all that are found. */
  readonly instant?: string;
}

export function RerunFailedAction(props: Props) {
  return props === undefined ? null : null;
}
