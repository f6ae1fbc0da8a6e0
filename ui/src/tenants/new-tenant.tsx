/** Creates a tenant: its database, with Millrace installed. Its scheduler starts automatically. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { nameFault } from './name-fault.ts';
import { NameField } from './name-field.tsx';
import { OwnHostField } from './own-host.tsx';
import { useEngines } from './use-tenants.ts';
import { VersionField } from './version-field.tsx';

export function NewTenant({ close }: { readonly close: () => void }) {
  const [name, setName] = useState('');
  const [chosen, setVersion] = useState('');
  const [ownHost, setOwnHost] = useState(false);
  const [, go] = useLocation();
  const release = useEngines().data?.items.find(({ running, fault }) => running && fault === null)?.version;
  const version = chosen === '' ? (release ?? '') : chosen;
  const make = useChange({
    outdates: keys.tenants,
    change: () =>
      gateway('POST /api/tenants', {
        body: { name, own_host: ownHost, ...(version === '' ? {} : { version }) },
      }),
    onDone: () => {
      close();
      go(`/tenants/${encodeURIComponent(name)}`);
    },
  });
  return (
    <ActionForm submit={() => make.mutate()}>
      <NameField
        value={name}
        change={setName}
        hint="Part of its addresses (/t/name/…), and the name of its database."
      />
      <VersionField value={version} change={setVersion} hint="It can be upgraded later, by itself." />
      <OwnHostField value={ownHost} change={setOwnHost} />
      <ActionFoot
        close={close}
        act={make.isPending ? 'Making it…' : 'Make tenant'}
        disabled={make.isPending || name === '' || nameFault(name) !== undefined}
      >
        <InlineFailure error={make.error} />
      </ActionFoot>
    </ActionForm>
  );
}
