/**
 * Changes the number of slots (`max_background_workers`), after a preview of the effect. A change that stops schedulers must be
 * confirmed.
 */
import { useState } from 'react';
import { ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway } from '../client.ts';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { limitOf, outlookOf, stoppedBy } from './slots.ts';
import type { Slots } from '../tenants/use-tenants.ts';

export function SlotLimit({ slots, close }: { readonly slots: Slots; readonly close: () => void }) {
  const [text, setText] = useState(String(slots.limit));
  const [agreed, agree] = useState('');
  const limit = limitOf(text);
  const isOther = limit !== undefined && limit !== slots.limit;
  const stopped = isOther ? stoppedBy(slots, limit) : [];
  // who agreed to others is asked again
  const isAgreed = stopped.length === 0 || agreed === stopped.join(' ');
  const save = useChange({
    outdates: keys.tenants,
    change: () => gateway('PUT /api/slots', { body: { limit: limit ?? slots.limit } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => save.mutate()}>
      <Field
        label="Slots"
        hint="max_background_workers: the launcher and the schedulers of all tenants. Takes effect at once."
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
      {isOther ? <p className="preview">{outlookOf(slots, limit)}</p> : null}
      {stopped.length === 0 ? null : (
        <label className="check">
          <input
            type="checkbox"
            checked={isAgreed}
            onChange={(event) => agree(event.currentTarget.checked ? stopped.join(' ') : '')}
          />
          {stopped.length === 1 ? 'Stop this scheduler' : `Stop these ${stopped.length} schedulers`}
        </label>
      )}
      <ActionFoot
        close={close}
        act="Save"
        kind={stopped.length === 0 ? 'primary' : 'danger'}
        disabled={save.isPending || !isOther || !isAgreed}
      >
        <InlineFailure error={save.error} />
      </ActionFoot>
    </ActionForm>
  );
}
