/** Deletes a job. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { tenant } from '../client.ts';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import { useAction } from './use-action.ts';

interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

export function DeleteJobAction({ job }: Props) {
  return (
    <ActionDialog label="Delete job" title={`Delete ${job.name}`} kind="danger">
      {(close) => <Delete job={job} close={close} />}
    </ActionDialog>
  );
}

function Delete({ job, close }: Props & { readonly close: () => void }) {
  const [typed, setTyped] = useState('');
  const [, go] = useLocation();
  const remove = useAction({
    // reading its data again would only result in 404
    job: undefined,
    outdates: [keys.projects, keys.backfills],
    act: () => tenant('DELETE /api/jobs/{id}', { params: { id: job.id } }),
    onDone: () => go('/jobs'),
  });
  return (
    <ActionForm submit={() => remove.mutate()}>
      <div className="preview">
        <p>Its triggers stop. Queued runs are cancelled, and running tasks are killed.</p>
        <p>The history of its runs, with their logs, stays readable until retention removes it.</p>
        <p>Tasks of other jobs that depend on this job may wait for ever. This cannot be undone.</p>
      </div>
      <Field label={`Type the name of the job to continue: ${job.name}`}>
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            value={typed}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </Field>
      <ActionFoot
        close={close}
        act={remove.isPending ? 'Deleting…' : 'Delete job'}
        kind="danger"
        disabled={remove.isPending || typed !== job.name}
      >
        <InlineFailure error={remove.error} />
      </ActionFoot>
    </ActionForm>
  );
}
