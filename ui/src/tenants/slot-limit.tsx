/** Changes how many slots there are (`max_background_workers`), and says first what that does. */
import { useState } from 'react';
import { ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway } from '../client.ts';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { limitOf, outlookOf } from './slots.ts';
import type { Slots } from './use-tenants.ts';

export function SlotLimit({ slots, close }: { readonly slots: Slots; readonly close: () => void }) {
  const [text, setText] = useState(String(slots.limit));
  const limit = limitOf(text);
  const save = useChange({
    outdates: keys.tenants,
    change: () => gateway('PUT /api/slots', { body: { limit: limit ?? slots.limit } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => save.mutate()}>
      <Field
        label="Slots"
        hint="max_background_workers: launcher, schedulers and housekeeping of all tenants. Takes effect at once."
        fault={limit === undefined ? 'A whole number, at most 10,000.' : undefined}
      >
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            inputMode="numeric"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
        )}
      </Field>
      {limit === undefined || limit === slots.limit ? null : <p className="preview">{outlookOf(slots, limit)}</p>}
      <ActionFoot close={close} act="Save" disabled={save.isPending || limit === undefined || limit === slots.limit}>
        <InlineFailure error={save.error} />
      </ActionFoot>
    </ActionForm>
  );
}
