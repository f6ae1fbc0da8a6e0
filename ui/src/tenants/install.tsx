/** Installs Millrace in a database that was found without it. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { nameFault, nameLike } from './name-fault.ts';
import { NameField } from './name-field.tsx';
import type { Tenant } from './standing.ts';
import { VersionField } from './version-field.tsx';

export function InstallAction({ tenant }: { readonly tenant: Tenant }) {
  return (
    <ActionDialog label="Install" title={`Install Millrace in ${tenant.name}`} kind="primary">
      {(close) => <Install tenant={tenant} close={close} />}
    </ActionDialog>
  );
}

function Install({ tenant, close }: { readonly tenant: Tenant; readonly close: () => void }) {
  const [version, setVersion] = useState('');
  const { database } = tenant;
  // a database that was found may have a name that no tenant can be given
  const isNameless = nameFault(tenant.name) !== undefined;
  const [name, setName] = useState(nameLike(tenant.name));
  const [, go] = useLocation();
  const install = useChange({
    outdates: keys.tenants,
    change: () =>
      gateway('POST /api/tenants/{name}/adopt', {
        params: { name },
        body: { database, ...(version === '' ? {} : { version }) },
      }),
    onDone: () => {
      close();
      if (isNameless) go(`/tenants/${encodeURIComponent(name)}`);
    },
  });
  return (
    <ActionForm submit={() => install.mutate()}>
      <p className="preview">
        The database <code>{database}</code> gets a schema <code>millrace</code>; nothing else in it is touched.
      </p>
      {isNameless ? <NameField value={name} change={setName} hint="Part of its addresses: /t/name/…" /> : null}
      <VersionField value={version} change={setVersion} hint="It can be upgraded later, by itself." />
      <ActionFoot
        close={close}
        act={install.isPending ? 'Installing…' : 'Install'}
        disabled={install.isPending || nameFault(name) !== undefined}
      >
        <InlineFailure error={install.error} />
      </ActionFoot>
    </ActionForm>
  );
}
