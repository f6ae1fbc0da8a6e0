/** Whether a tenant's scheduler shares its process with others. */
import { useState } from 'react';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import type { Tenant } from './standing.ts';

interface FieldProps {
  readonly value: boolean;
  readonly change: (value: boolean) => void;
}

export function OwnHostField({ value, change }: FieldProps) {
  return (
    <label className="check">
      <input type="checkbox" checked={value} onChange={(event) => change(event.currentTarget.checked)} />A host of its
      own: no other tenant shares its process
    </label>
  );
}

export function OwnHostAction({ tenant }: { readonly tenant: Tenant }) {
  return (
    <ActionDialog label="Change host" title={`Host of ${tenant.name}`}>
      {(close) => <OwnHost tenant={tenant} close={close} />}
    </ActionDialog>
  );
}

function OwnHost({ tenant, close }: { readonly tenant: Tenant; readonly close: () => void }) {
  const [own, setOwn] = useState(tenant.own_host);
  const save = useChange({
    outdates: keys.tenants,
    change: () => gateway('PATCH /api/tenants/{name}', { params: { name: tenant.name }, body: { own_host: own } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => save.mutate()}>
      <OwnHostField value={own} change={setOwn} />
      <p className="preview">
        A host of its own costs one more process. Its scheduler moves there, and back, by itself.
      </p>
      <ActionFoot close={close} act="Save" disabled={save.isPending || own === tenant.own_host}>
        <InlineFailure error={save.error} />
      </ActionFoot>
    </ActionForm>
  );
}
