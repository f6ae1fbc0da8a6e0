/** The stash that all projects share: names to see, values to put in, never to read. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { tenant } from '../client.ts';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';

export function Stash() {
  const names = useQuery({ queryKey: keys.stash, queryFn: ({ signal }) => tenant('GET /api/stash', { signal }) });
  return (
    <section aria-labelledby="stash">
      <header className="settings-head">
        <h2 id="stash">Stash</h2>
        <ActionDialog label="New entry" title="New entry of the stash">
          {(close) => <NewEntry close={close} />}
        </ActionDialog>
      </header>
      <p className="muted">Secrets for tasks, encrypted. Values are never shown, here or anywhere.</p>
      <Answer of={names} what="Reading the stash">
        {(items) => (
          <ul className="stash-names">
            {items.map((name) => (
              <li key={name}>
                <code>{name}</code>
                <ActionDialog label="Remove" title={`Remove ${name}`} kind="danger">
                  {(close) => <Removal name={name} close={close} />}
                </ActionDialog>
              </li>
            ))}
          </ul>
        )}
      </Answer>
    </section>
  );
}

function useStashChange(close: () => void, change: () => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => {
      close();
      return client.invalidateQueries({ queryKey: keys.stash });
    },
  });
}

function NewEntry({ close }: { readonly close: () => void }) {
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const save = useStashChange(close, () =>
    tenant('PUT /api/stash/{key}', { params: { key: name.trim() }, body: new TextEncoder().encode(value) }),
  );
  return (
    <ActionForm submit={() => save.mutate()}>
      <Field label="Name" hint="An entry of that name is replaced.">
        {(wiring) => (
          <input {...wiring} className="input" value={name} onChange={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="Value">
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            type="password"
            autoComplete="new-password"
            value={value}
            onChange={(event) => setValue(event.currentTarget.value)}
          />
        )}
      </Field>
      <ActionFoot close={close} act="Save" disabled={save.isPending || name.trim() === '' || value === ''}>
        <InlineFailure error={save.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function Removal({ name, close }: { readonly name: string; readonly close: () => void }) {
  const remove = useStashChange(close, () => tenant('DELETE /api/stash/{key}', { params: { key: name } }));
  return (
    <ActionForm submit={() => remove.mutate()}>
      <p className="preview">Tasks that name it will fail to start. The value cannot be brought back.</p>
      <ActionFoot close={close} act="Remove" kind="danger" disabled={remove.isPending}>
        <InlineFailure error={remove.error} />
      </ActionFoot>
    </ActionForm>
  );
}
