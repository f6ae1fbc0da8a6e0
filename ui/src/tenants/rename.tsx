/** Renames a tenant. Its addresses change with its name. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway, tenantName } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { nameFault } from './name-fault.ts';
import { NameField } from './name-field.tsx';
import type { Tenant } from './standing.ts';

export function RenameAction({ tenant }: { readonly tenant: Tenant }) {
  return (
    <ActionDialog label="Rename" title={`Rename ${tenant.name}`}>
      {(close) => <Rename tenant={tenant} close={close} />}
    </ActionDialog>
  );
}

function Rename({ tenant, close }: { readonly tenant: Tenant; readonly close: () => void }) {
  const [name, setName] = useState(tenant.name);
  const [, go] = useLocation();
  const rename = useChange({
    // reading data under the old name would only result in 404
    outdates: keys.tenantList,
    key: keys.tenant(tenant.name),
    change: () => gateway('POST /api/tenants/{name}/rename', { params: { name: tenant.name }, body: { name } }),
    onDone: () => {
      const page = `/tenants/${encodeURIComponent(name)}`;
      // these very pages have moved
      if (tenant.name === tenantName) location.assign(`/t/${encodeURIComponent(name)}${page}`);
      else go(page, { replace: true });
    },
  });
  return (
    <ActionForm submit={() => rename.mutate()}>
      <NameField value={name} change={setName} />
      <div className="preview">
        <p>
          Its pages and API move to <code>/t/{name}/</code>; links to the old address no longer work. Keys keep working.
        </p>
        {tenant.database === tenant.name ? (
          <p>Its database is renamed with it, which ends all connections to it for a moment.</p>
        ) : null}
      </div>
      <ActionFoot
        close={close}
        act={rename.isPending ? 'Renaming…' : 'Rename'}
        disabled={rename.isPending || name === tenant.name || nameFault(name) !== undefined}
      >
        <InlineFailure error={rename.error} />
      </ActionFoot>
    </ActionForm>
  );
}
