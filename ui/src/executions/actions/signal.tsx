/** Sends a signal to an execution. One that nothing waits for yet is kept for a day. */
import { useState } from 'react';
import { ActionDialog } from '../../actions/action-dialog.tsx';
import { tenant } from '../../client.ts';
import { Field } from '../../kit/field.tsx';
import { JsonField } from '../../kit/json/json-field.tsx';
import { parseJson } from '../../kit/json/json-text.ts';
import { useExecution } from '../use-executions.ts';
import { OperationForm } from './operation-form.tsx';

export function SignalAction({ id, offered }: { readonly id: string; readonly offered: boolean }) {
  return (
    <ActionDialog label="Signal" title="Send a signal" offered={offered}>
      {(close) => <SignalForm id={id} close={close} />}
    </ActionDialog>
  );
}

function SignalForm({ id, close }: { readonly id: string; readonly close: () => void }) {
  const awaited = useAwaited(id);
  const [name, setName] = useState(awaited[0] ?? '');
  const [text, setText] = useState('null');
  const parsed = parseJson(text.trim() === '' ? 'null' : text);
  const send = () =>
    tenant('POST /api/executions/{id}/signals', {
      params: { id },
      body: { name: name.trim(), payload: parsed.ok ? parsed.value : null },
    });
  const isPossible = parsed.ok && name.trim() !== '';
  return (
    <OperationForm execution={id} act="Send signal" isPossible={isPossible} send={send} close={close}>
      <Field label="Signal" hint={hintOf(awaited, name.trim())}>
        {(wiring) => (
          <>
            <input
              {...wiring}
              className="input"
              value={name}
              maxLength={200}
              list={`${wiring.id}-names`}
              autoComplete="off"
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <datalist id={`${wiring.id}-names`}>
              {awaited.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <JsonField label="Payload, as JSON" text={text} parsed={parsed} change={setText} rows={4} />
    </OperationForm>
  );
}

/** Names of signals that steps wait for now. */
function useAwaited(id: string): readonly string[] {
  const nodes = useExecution(id).data?.nodes ?? [];
  return [...new Set(nodes.flatMap(({ waits }) => (waits?.kind === 'signal' ? waits.names : [])))];
}

function hintOf(awaited: readonly string[], name: string): string {
  if (awaited.length === 0) return 'No step waits for a signal now: it is kept for a day.';
  if (name === '' || awaited.includes(name)) return `Steps wait for ${awaited.join(', ')}.`;
  return `No step waits for ${name}: it is kept for a day. Steps wait for ${awaited.join(', ')}.`;
}
