/** Creates a key and shows its secret, which is the only time it can be seen. */
import { useState } from 'react';
import { type GatewayAnswer, gateway, tenantName } from '../client.ts';
import { ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { CopyButton } from '../kit/copy-button.tsx';
import { Field, SelectField } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { useChange } from './use-change.ts';

type Role = GatewayAnswer<'GET /api/keys'>['items'][number]['role'];

/** A worker's key serves all tenants, or only the current one. */
type Kind = Role | 'worker of this tenant';

const kinds: readonly { readonly value: Kind; readonly label: string }[] = [
  { value: 'viewer', label: 'viewer: may see everything and change nothing' },
  { value: 'operator', label: 'operator: may also run, pause and edit' },
  { value: 'worker', label: 'worker: runs tasks of all tenants' },
  { value: 'worker of this tenant', label: 'worker: runs tasks of this tenant only' },
  { value: 'root', label: 'root: may do everything, including managing keys' },
];

/** The request for a kind. Keys of viewers and operators belong to the current tenant. */
function bodyOf(kind: Kind): { role: Role; tenant?: string } {
  if (kind === 'worker of this tenant') return { role: 'worker', tenant: tenantName };
  return kind === 'viewer' || kind === 'operator' ? { role: kind, tenant: tenantName } : { role: kind };
}

function describeAccess(kind: Kind): string {
  const { tenant } = bodyOf(kind);
  return tenant === undefined ? 'Gives access to all tenants.' : `Gives access to the current tenant, ${tenant}.`;
}

export function NewKey({ close }: { readonly close: () => void }) {
  const [name, setName] = useState('');
  const [kind, setKind] = useState<Kind>('viewer');
  const make = useChange({
    outdates: keys.accessKeys,
    change: () => gateway('POST /api/keys', { body: { name: name.trim(), ...bodyOf(kind) } }),
  });
  if (make.data !== undefined) return <Made secret={make.data.key} name={make.data.name} close={close} />;
  return (
    <ActionForm submit={() => make.mutate()}>
      <Field label="Name" hint="Who or what will use it; the audit shows this name.">
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            value={name}
            maxLength={200}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => setName(event.currentTarget.value)}
          />
        )}
      </Field>
      <SelectField label="Role" hint={describeAccess(kind)} value={kind} options={kinds} change={setKind} />
      <ActionFoot close={close} act="Create key" disabled={make.isPending || name.trim() === ''}>
        <InlineFailure error={make.error} />
      </ActionFoot>
    </ActionForm>
  );
}

interface MadeProps {
  readonly secret: string;
  readonly name: string;
  readonly close: () => void;
}

function Made({ secret, name, close }: MadeProps) {
  return (
    <div className="action-form">
      <p role="status">
        The key <strong>{name}</strong> was created. Copy its secret now; it cannot be shown again.
      </p>
      <p className="new-secret">
        <code>{secret}</code>
        <CopyButton text={secret} />
      </p>
      <ActionFoot close={close} />
    </div>
  );
}
