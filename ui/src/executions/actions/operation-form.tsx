/** The form of an operation on an execution. It closes after the commit; an operation that is only stored stays, with the reason. */
import type { ReactNode } from 'react';
import { ActionFoot, ActionForm } from '../../actions/action-dialog.tsx';
import { useChange } from '../../admin/use-change.ts';
import { InlineFailure } from '../../kit/failure.tsx';
import { keys } from '../../queries.ts';

interface Outcome {
  readonly outcome: string;
  readonly detail?: string | undefined;
}

interface Props {
  readonly execution: string;
  /** The word of the button. */
  readonly act: string;
  readonly kind?: 'primary' | 'danger';
  readonly isPossible?: boolean;
  readonly send: () => Promise<Outcome>;
  readonly close: () => void;
  readonly children: ReactNode;
}

export function OperationForm({ execution, act, kind, isPossible = true, send, close, children }: Props) {
  const change = useChange({
    outdates: keys.execution(execution),
    change: send,
    onDone: ({ outcome }) => {
      if (outcome !== 'accepted') close();
    },
  });
  if (change.data?.outcome === 'accepted') {
    return (
      <div className="action-form">
        <p role="status" className="note warned">
          It is stored, and takes effect as soon as a conductor takes it
          {change.data.detail === undefined ? '' : `: ${change.data.detail}`}.
        </p>
        <ActionFoot close={close} />
      </div>
    );
  }
  return (
    <ActionForm submit={() => isPossible && !change.isPending && change.mutate()}>
      {children}
      <ActionFoot close={close} act={act} {...(kind && { kind })} disabled={change.isPending || !isPossible}>
        <InlineFailure error={change.error} />
      </ActionFoot>
    </ActionForm>
  );
}
