/** A stash, of one project or the global one. Names are listed and values can be stored, but never read. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { pageIn } from '../../../src/http/client.ts';
import { listAll, tenant } from '../client.ts';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import './admin.css';
import { useChange } from './use-change.ts';

interface Owner {
  /** Without it: the global stash. */
  readonly project?: string | undefined;
}

function useNames(project: string | undefined) {
  return useQuery({
    queryKey: [...keys.stash, project ?? 'all'],
    queryFn: async ({ signal }) => {
      const { items } = await listAll(async (cursor, limit) => {
        const query = { cursor, limit };
        const answer =
          project === undefined
            ? await tenant('GET /api/stash', { query, signal })
            : await tenant('GET /api/projects/{id}/stash', { params: { id: project }, query, signal });
        return pageIn(answer);
      });
      return items;
    },
  });
}

export function Stash({ project }: Owner) {
  const names = useNames(project);
  return (
    <section aria-labelledby="stash">
      <header className="settings-head">
        <h2 id="stash">Stash</h2>
        <ActionDialog label="New entry" title="New stash entry">
          {(close) => <NewEntry project={project} close={close} />}
        </ActionDialog>
      </header>
      <p className="muted">Encrypted secrets for tasks. Values are never shown, here or anywhere else.</p>
      <Answer of={names} what="Reading the stash">
        {(items) => (
          <ul className="stash-names">
            {items.map((name) => (
              <li key={name}>
                <code>{name}</code>
                <ActionDialog label="Remove" title={`Remove ${name}`} kind="danger">
                  {(close) => <Removal project={project} name={name} close={close} />}
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
  return useChange({ outdates: keys.stash, change, onDone: close });
}

interface Inner extends Owner {
  readonly close: () => void;
}

function NewEntry({ project, close }: Inner) {
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const save = useStashChange(close, () => {
    const [key, body] = [name.trim(), new TextEncoder().encode(value)];
    return project === undefined
      ? tenant('PUT /api/stash/{key}', { params: { key }, body })
      : tenant('PUT /api/projects/{id}/stash/{key}', { params: { id: project, key }, body });
  });
  return (
    <ActionForm submit={() => save.mutate()}>
      <Field label="Name" hint="An existing entry of this name is replaced.">
        {(wiring) => (
          <input {...wiring} className="input" value={name} onChange={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="Value">
        {(wiring) => (
          // multi-line, for certificates
          <textarea
            {...wiring}
            className="input"
            rows={4}
            spellCheck={false}
            autoComplete="off"
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

function Removal({ project, name, close }: Inner & { readonly name: string }) {
  const remove = useStashChange(close, () =>
    project === undefined
      ? tenant('DELETE /api/stash/{key}', { params: { key: name } })
      : tenant('DELETE /api/projects/{id}/stash/{key}', { params: { id: project, key: name } }),
  );
  return (
    <ActionForm submit={() => remove.mutate()}>
      <p className="preview">Tasks that use it will fail to start. The value cannot be restored.</p>
      <ActionFoot close={close} act="Remove" kind="danger" disabled={remove.isPending}>
        <InlineFailure error={remove.error} />
      </ActionFoot>
    </ActionForm>
  );
}
