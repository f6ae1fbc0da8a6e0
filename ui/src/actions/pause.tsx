/**
 * Pauses or unpauses a job. Pausing asks for no confirmation. Unpausing first asks the server which missed instants would
 * fire; if there are any, they are shown for confirmation.
 */
import { useState } from 'react';
import { createPortal } from 'react-dom';
import { tenant } from '../client.ts';
import { Dialog } from '../kit/dialog.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { useMayOperate } from '../session/session.ts';
import { ActionFoot, ActionForm } from './action-dialog.tsx';
import './actions.css';
import { type Outlook, setsOff, SetOff } from './set-off.tsx';
import { useAction } from './use-action.ts';

interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

/** The instants that unpausing would fire; undefined if there are none, or if the server cannot tell. */
async function missedBy(job: string): Promise<Outlook | undefined> {
  try {
    const { raw_definition: raw } = await tenant('GET /api/jobs/{id}', { params: { id: job } });
    const document = JSON.parse(raw) as object;
    const body = JSON.stringify({ ...document, paused: false });
    const { applied } = await tenant('POST /api/jobs/check', { body });
    return applied?.outlook !== undefined && setsOff(applied.outlook) ? applied.outlook : undefined;
  } catch {
    // a document that no longer passes its checks must not prevent unpausing
    return undefined;
  }
}

/** The action of the pressed button, because another user may have paused or unpaused the job meanwhile. */
interface Wish {
  readonly paused: boolean;
  readonly isSure: boolean;
}

export function PauseAction({ job }: Props) {
  const [missed, setMissed] = useState<Outlook>();
  const isOffered = useMayOperate();
  const { mutate, isPending, error } = useAction({
    job: job.id,
    outdates: [keys.jobWritten(job.id)],
    act: async ({ paused, isSure }: Wish) => {
      const outlook = paused || isSure ? undefined : await missedBy(job.id);
      if (outlook === undefined)
        await tenant('PUT /api/jobs/{id}/paused', { params: { id: job.id }, body: { paused } });
      return outlook;
    },
    onDone: setMissed,
  });
  if (!isOffered) return null;
  return (
    <>
      {missed === undefined ? <InlineFailure error={error} /> : null}
      <button
        type="button"
        className="button"
        disabled={isPending}
        onClick={() => mutate({ paused: !job.paused, isSure: false })}
      >
        {job.paused ? 'Unpause' : 'Pause'}
        <span className="unseen"> {job.name}</span>
      </button>
      {missed === undefined
        ? null
        : createPortal(
            <Dialog title={`Unpause ${job.name}`} close={() => setMissed(undefined)}>
              <ActionForm submit={() => mutate({ paused: false, isSure: true })}>
                <p className="note">Instants were missed while the job was paused. Its triggers catch up as follows:</p>
                <SetOff outlook={missed} />
                <ActionFoot close={() => setMissed(undefined)} act="Unpause" disabled={isPending}>
                  <InlineFailure error={error} />
                </ActionFoot>
              </ActionForm>
            </Dialog>,
            document.body,
          )}
    </>
  );
}
