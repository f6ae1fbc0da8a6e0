/** Cancels a run. */
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { useRun } from '../runs/use-runs.ts';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import { useAction } from './use-action.ts';

interface Props {
  readonly run: { readonly id: string; readonly job: { readonly id: string } | null };
}

export function CancelRunAction(props: Props) {
  return (
    <ActionDialog label="Cancel run" title="Cancel the run" kind="danger">
      {(close) => <Cancel {...props} close={close} />}
    </ActionDialog>
  );
}

const outcomes = {
  cancelled: 'The run is cancelled.',
  cancelling: 'Its worker is ending it, which takes a few seconds.',
  finished: 'The run had already ended; nothing was changed.',
} as const;

function Cancel({ run, close }: Props & { readonly close: () => void }) {
  const known = useRun(run.id);
  const cancel = useAction({
    job: run.job?.id,
    outdates: [keys.run(run.id)],
    act: () => tenant('POST /api/runs/{id}/cancel', { params: { id: run.id } }),
  });
  if (cancel.data !== undefined) {
    return (
      <div className="action-form">
        <p role="status">{outcomes[cancel.data.outcome]}</p>
        <ActionFoot close={close} />
      </div>
    );
  }
  return (
    <ActionForm submit={() => cancel.mutate()}>
      <Answer of={known} what="Reading the run">
        {(data) => (
          <div className="preview">
            <p>
              {data.started_at === null ? (
                <>
                  <strong>{data.task?.name ?? 'The run'}</strong> is queued: it ends at once and never starts.
                </>
              ) : (
                <>
                  <strong>{data.task?.name ?? 'The run'}</strong> is running: its worker asks it to stop and, five
                  seconds later, kills it.
                </>
              )}
            </p>
            <p className="muted">It is not retried, and tasks that depend on it do not run.</p>
          </div>
        )}
      </Answer>
      <ActionFoot
        close={close}
        act={cancel.isPending ? 'Cancelling…' : 'Cancel run'}
        kind="danger"
        disabled={cancel.isPending}
      >
        <InlineFailure error={cancel.error} />
      </ActionFoot>
    </ActionForm>
  );
}
