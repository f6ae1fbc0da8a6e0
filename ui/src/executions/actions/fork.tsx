/** A new execution that begins with the state of this one, now or as at a revision. */
import { useState } from 'react';
import { Link } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../../actions/action-dialog.tsx';
import { useChange } from '../../admin/use-change.ts';
import { tenant } from '../../client.ts';
import { Failure } from '../../kit/failure.tsx';
import { Field } from '../../kit/field.tsx';
import { JsonField } from '../../kit/json/json-field.tsx';
import { isObject, parseObject } from '../../kit/json/json-text.ts';
import { keys } from '../../queries.ts';
import type { Execution } from '../use-executions.ts';

interface Props {
  readonly execution: Pick<Execution, 'id'>;
  /** The revision that is proposed. */
  readonly rev: number;
  readonly label?: string;
}

export function ForkAction({ execution, rev, label = 'Fork' }: Props) {
  if (rev < 1) return null;
  return (
    <ActionDialog label={label} title="Fork the execution">
      {(close) => <ForkForm execution={execution} rev={rev} close={close} />}
    </ActionDialog>
  );
}

function ForkForm({ execution: { id }, rev: proposed, close }: Props & { readonly close: () => void }) {
  const [revText, setRev] = useState(String(proposed));
  const [fieldsText, setFields] = useState('');
  const [key, setKey] = useState('');
  const rev = /^[1-9]\d{0,8}$/.test(revText) ? Number(revText) : undefined;
  const fields = parseObject(fieldsText);
  const fork = useChange({
    outdates: keys.executions,
    change: () =>
      tenant('POST /api/executions/{id}/fork', {
        params: { id },
        body: {
          ...(rev !== undefined && { rev }),
          ...(fieldsText.trim() !== '' && fields.ok && isObject(fields.value) && { fields: { ...fields.value } }),
          ...(key.trim() !== '' && { key: key.trim() }),
        },
      }),
  });
  if (fork.data !== undefined) return <Forked forked={fork.data} close={close} />;
  const isPossible = rev !== undefined && fields.ok;
  return (
    <ActionForm submit={() => isPossible && fork.mutate()}>
      <p className="preview">
        A new execution begins where this one was. Tasks that were running then start again, and this execution stays as
        it is.
      </p>
      <Field label="Revision" fault={rev === undefined ? 'Enter the number of a revision' : undefined}>
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            inputMode="numeric"
            value={revText}
            onChange={(event) => setRev(event.currentTarget.value.trim())}
          />
        )}
      </Field>
      <JsonField
        label="Fields to set, as JSON"
        hint="Optional: members of f that differ in the new execution"
        text={fieldsText}
        parsed={fields}
        change={setFields}
        rows={3}
        placeholder='{"amount": 12}'
      />
      <Field label="Key" hint="Optional: a name of its own">
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
      {fork.error === null ? null : <Failure error={fork.error} />}
      <ActionFoot close={close} act={fork.isPending ? 'Forking…' : 'Fork'} disabled={!isPossible || fork.isPending} />
    </ActionForm>
  );
}

interface ForkedProps {
  readonly forked: { readonly id: string; readonly created: boolean; readonly detail?: string | undefined };
  readonly close: () => void;
}

function Forked({ forked: { id, created, detail }, close }: ForkedProps) {
  return (
    <div className="action-form">
      <p role="status">{created ? 'The new execution is there.' : 'An execution has this key already.'}</p>
      {detail === undefined ? null : <p className="note warned">It begins later: {detail}.</p>}
      <ActionFoot close={close}>
        <Link href={`/executions/${id}`} className="button primary" onClick={close}>
          Look at it
        </Link>
      </ActionFoot>
    </div>
  );
}
