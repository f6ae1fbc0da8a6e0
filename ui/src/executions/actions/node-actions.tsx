/** The actions on a step that is under way: retry or skip it if it has failed, cancel it otherwise. */
import { useState } from 'react';
import { ActionDialog } from '../../actions/action-dialog.tsx';
import { tenant } from '../../client.ts';
import { JsonField } from '../../kit/json/json-field.tsx';
import { parseJson } from '../../kit/json/json-text.ts';
import { OperationForm } from './operation-form.tsx';

interface Props {
  readonly execution: string;
  /** The id of the node. */
  readonly node: string;
}

interface FormProps extends Props {
  readonly close: () => void;
}

export function RetryAction({ execution, node }: Props) {
  return (
    <ActionDialog label="Retry" title="Try the step again" kind="primary">
      {(close) => <Retry execution={execution} node={node} close={close} />}
    </ActionDialog>
  );
}

function Retry({ execution, node, close }: FormProps) {
  const send = () => tenant('POST /api/executions/{id}/nodes/{node}/retry', { params: { id: execution, node } });
  return (
    <OperationForm execution={execution} act="Retry" send={send} close={close}>
      <p className="preview">The step begins again now, with the present fields. It is one more attempt.</p>
    </OperationForm>
  );
}

export function SkipAction({ execution, node }: Props) {
  return (
    <ActionDialog label="Skip" title="Skip the step">
      {(close) => <Skip execution={execution} node={node} close={close} />}
    </ActionDialog>
  );
}

function Skip({ execution, node, close }: FormProps) {
  const [text, setText] = useState('null');
  const parsed = parseJson(text.trim() === '' ? 'null' : text);
  const send = () =>
    tenant('POST /api/executions/{id}/nodes/{node}/skip', {
      params: { id: execution, node },
      body: { result: parsed.ok ? parsed.value : null },
    });
  return (
    <OperationForm execution={execution} act="Skip" isPossible={parsed.ok} send={send} close={close}>
      <p className="preview">The step ends as if it had given this result, and the execution goes on after it.</p>
      <JsonField label="Result, as JSON" text={text} parsed={parsed} change={setText} rows={4} />
    </OperationForm>
  );
}

export function CancelNodeAction({ execution, node }: Props) {
  return (
    <ActionDialog label="Cancel step" title="Cancel the step" kind="danger">
      {(close) => <CancelNode execution={execution} node={node} close={close} />}
    </ActionDialog>
  );
}

function CancelNode({ execution, node, close }: FormProps) {
  const [isKill, setKill] = useState(false);
  const params = { id: execution, node };
  const send = () =>
    isKill
      ? tenant('POST /api/executions/{id}/nodes/{node}/kill', { params })
      : tenant('POST /api/executions/{id}/nodes/{node}/cancel', { params });
  return (
    <OperationForm
      execution={execution}
      act={isKill ? 'Kill step' : 'Cancel step'}
      kind="danger"
      send={send}
      close={close}
    >
      <p className="preview">
        {isKill
          ? 'The step ends at once, with all that is inside it. Nothing is undone. The steps after it go on.'
          : 'The step and all that is inside it is stopped and undone, and its on_cancel runs. The steps after it go on.'}
      </p>
      <label className="check">
        <input type="checkbox" checked={isKill} onChange={(event) => setKill(event.currentTarget.checked)} />
        Kill it, without undoing anything
      </label>
    </OperationForm>
  );
}
