/** Runs one task at one instant. */
import { Link } from 'wouter';
import { tenant } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { Instant } from '../time/times.tsx';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import { useAction } from './use-action.ts';

interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
  readonly task: { readonly id: string; readonly name: string };
  readonly instant: string;
}

export function ActivateAction(props: Props) {
  return (
    <ActionDialog label="Run task" title={`Run ${props.task.name}`}>
      {(close) => <Activate {...props} close={close} />}
    </ActionDialog>
  );
}

function Activate({ job, task, instant, close }: Props & { readonly close: () => void }) {
  const run = useAction({
    job: job.id,
    act: () =>
      tenant('PUT /api/tasks/{id}/tokens/{instant}', { params: { id: task.id, instant }, body: { priority: 'high' } }),
  });
  if (run.data !== undefined) return <Done runs={run.data.runs} close={close} />;
  return (
    <ActionForm submit={() => run.mutate()}>
      <div className="preview">
        <p>
          <strong>{task.name}</strong> gets a new run at <Instant at={instant} /> at once, whatever it is waiting for.
        </p>
        <p>
          Its result counts for the tasks that depend on it, as usual. A task that waits only for this one runs next.
        </p>
        <p className="muted">It replaces a retry that is waiting.</p>
      </div>
      {job.paused ? <p className="note warned">The job is paused: the run waits until it is unpaused.</p> : null}
      <ActionFoot close={close} act={run.isPending ? 'Starting…' : 'Run task'} disabled={run.isPending}>
        <InlineFailure error={run.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function Done({ runs, close }: { readonly runs: readonly string[]; readonly close: () => void }) {
  const [id] = runs;
  return (
    <div className="action-form">
      <p role="status">The run is queued.</p>
      <ActionFoot close={close}>
        {id === undefined ? null : (
          <Link href={`/runs/${id}`} className="button primary" onClick={close}>
            See the run
          </Link>
        )}
      </ActionFoot>
    </div>
  );
}
