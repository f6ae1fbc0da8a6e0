/** The actions on an execution: signal, pause and resume, cancel, fork, patch. One that has ended can only be forked. */
import { useState } from 'react';
import { ActionDialog } from '../../actions/action-dialog.tsx';
import { tenant } from '../../client.ts';
import type { Execution } from '../use-executions.ts';
import { hasEnded } from '../use-executions.ts';
import { ForkAction } from './fork.tsx';
import { OperationForm } from './operation-form.tsx';
import { PatchAction } from './patch.tsx';
import { SignalAction } from './signal.tsx';

interface Props {
  readonly execution: Execution;
}

interface FormProps {
  readonly id: string;
  readonly close: () => void;
}

export function ExecutionActions({ execution }: Props) {
  const { id, status, rev } = execution;
  const isLive = !hasEnded(execution);
  const isPaused = status === 'paused';
  return (
    <div className="page-actions">
      <SignalAction id={id} offered={isLive} />
      <PatchAction execution={execution} offered={isLive} />
      <ForkAction execution={execution} rev={rev} />
      <ActionDialog label="Pause" title="Pause the execution" offered={isLive && !isPaused}>
        {(close) => <Pause id={id} close={close} />}
      </ActionDialog>
      <ActionDialog label="Resume" title="Resume the execution" kind="primary" offered={isPaused}>
        {(close) => <Resume id={id} close={close} />}
      </ActionDialog>
      <ActionDialog label="Cancel" title="Cancel the execution" kind="danger" offered={isLive}>
        {(close) => <Cancel id={id} close={close} />}
      </ActionDialog>
    </div>
  );
}

function Pause({ id, close }: FormProps) {
  const send = () => tenant('POST /api/executions/{id}/pause', { params: { id } });
  return (
    <OperationForm execution={id} act="Pause" send={send} close={close}>
      <p className="preview">
        It begins no step until it is resumed. Signals gather, timers wait, and tasks that run go on: their answers are
        kept.
      </p>
    </OperationForm>
  );
}

function Resume({ id, close }: FormProps) {
  const send = () => tenant('POST /api/executions/{id}/resume', { params: { id } });
  return (
    <OperationForm execution={id} act="Resume" send={send} close={close}>
      <p className="preview">
        It takes what has gathered meanwhile, in order, and goes on. Timers that are due fire now.
      </p>
    </OperationForm>
  );
}

function Cancel({ id, close }: FormProps) {
  const [isKill, setKill] = useState(false);
  const send = () =>
    isKill
      ? tenant('POST /api/executions/{id}/kill', { params: { id } })
      : tenant('POST /api/executions/{id}/cancel', { params: { id } });
  return (
    <OperationForm execution={id} act={isKill ? 'Kill' : 'Cancel execution'} kind="danger" send={send} close={close}>
      <p className="preview">
        {isKill
          ? 'It ends at once: nothing is undone, on_cancel is left out, and tasks are not waited for.'
          : 'Tasks under way are stopped, completed steps with undo are undone, and on_cancel runs. Then it has ended.'}
      </p>
      <label className="check">
        <input type="checkbox" checked={isKill} onChange={(event) => setKill(event.currentTarget.checked)} />
        Kill it, without undoing anything
      </label>
    </OperationForm>
  );
}
