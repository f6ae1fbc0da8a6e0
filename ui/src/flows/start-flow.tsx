/** Starts an execution: its input as JSON, and a key of your own. */
import { useState } from 'react';
import { Link } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { tenant } from '../client.ts';
import { Field } from '../kit/field.tsx';
import { Failure } from '../kit/failure.tsx';
import { JsonField } from '../kit/json/json-field.tsx';
import { parseJson } from '../kit/json/json-text.ts';
import { keys } from '../queries.ts';
import type { FlowViewProps } from './use-flows.ts';

interface FormProps extends FlowViewProps {
  readonly close: () => void;
}

export function StartFlowAction({ flow }: FlowViewProps) {
  return (
    <ActionDialog label="Start" title={`Start ${flow.name}`} kind="primary">
      {(close) => <StartForm flow={flow} close={close} />}
    </ActionDialog>
  );
}

function StartForm({ flow, close }: FormProps) {
  const [text, setText] = useState('{}');
  const [key, setKey] = useState('');
  const parsed = text.trim() === '' ? parseJson('{}') : parseJson(text);
  const start = useChange({
    outdates: keys.executions,
    change: () =>
      tenant('POST /api/executions', {
        body: {
          flow: flow.name,
          version: flow.version,
          input: parsed.ok ? parsed.value : null,
          ...(key.trim() === '' ? {} : { key: key.trim() }),
        },
      }),
  });
  if (start.data !== undefined) return <Started started={start.data} close={close} />;
  return (
    <ActionForm submit={() => parsed.ok && start.mutate()}>
      <JsonField
        label="Input, as JSON"
        hint="The fields of the execution begin as its members: f.amount is the amount of the input"
        text={text}
        parsed={parsed}
        change={setText}
        rows={8}
        placeholder='{"amount": 12}'
      />
      <Field label="Key" hint="Optional: your own name for it. A second start with the same key starts nothing">
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            value={key}
            maxLength={200}
            autoComplete="off"
            onChange={(event) => setKey(event.currentTarget.value)}
          />
        )}
      </Field>
      {start.error === null ? null : <Failure error={start.error} />}
      <ActionFoot
        close={close}
        act={start.isPending ? 'Starting…' : `Start version ${flow.version}`}
        disabled={!parsed.ok || start.isPending}
      />
    </ActionForm>
  );
}

interface StartedProps {
  readonly started: { readonly id: string; readonly created: boolean; readonly detail?: string | undefined };
  readonly close: () => void;
}

function Started({ started: { id, created, detail }, close }: StartedProps) {
  return (
    <div className="action-form">
      <p role="status">
        {created ? 'The execution is started.' : 'An execution has this key already. Nothing was started.'}
      </p>
      {detail === undefined ? null : <p className="note warned">It begins later: {detail}.</p>}
      <ActionFoot close={close}>
        <Link href={`/executions/${id}`} className="button primary" onClick={close}>
          {created ? 'Watch it' : 'Look at it'}
        </Link>
      </ActionFoot>
    </div>
  );
}
