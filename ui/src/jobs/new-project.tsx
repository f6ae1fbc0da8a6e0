/** Makes a project. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { tenant } from '../client.ts';
import { ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useAction } from '../actions/use-action.ts';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';

export function NewProject({ close }: { readonly close: () => void }) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [, navigate] = useLocation();
  const make = useAction({
    job: undefined,
    outdates: [keys.projects, keys.search],
    act: () => tenant('POST /api/projects', { body: { name: name.trim(), description: description.trim() } }),
    onDone: ({ id }) => {
      close();
      navigate(`/projects/${id}`);
    },
  });
  return (
    <ActionForm submit={() => make.mutate()}>
      <Field label="Name" hint="Unique in this tenant; job documents name it.">
        {(wiring) => (
          <input {...wiring} className="input" value={name} onChange={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="About" hint="For people; may be empty.">
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            value={description}
            onChange={(event) => setDescription(event.currentTarget.value)}
          />
        )}
      </Field>
      <ActionFoot close={close} act="Make project" disabled={make.isPending || name.trim() === ''}>
        <InlineFailure error={make.error} />
      </ActionFoot>
    </ActionForm>
  );
}
