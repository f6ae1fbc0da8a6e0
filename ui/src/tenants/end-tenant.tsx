/** Two ways to be rid of a tenant: without its database, or with it. Either asks for its name. */
import { type ReactNode, useState } from 'react';
import { useLocation } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway, tenantName } from '../client.ts';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import type { Tenant } from './standing.ts';

interface Props {
  readonly tenant: Tenant;
}

export function ReleaseAction({ tenant }: Props) {
  return (
    <ActionDialog label="Release" title={`Release ${tenant.name}`} kind="danger">
      {(close) => (
        <Ending
          tenant={tenant}
          close={close}
          act="Release"
          change={() => gateway('POST /api/tenants/{name}/release', { params: { name: tenant.name } })}
        >
          <p>
            Millrace is removed from the database <code>{tenant.database}</code>: all jobs, runs, logs and secrets of
            this tenant are gone, and so are its keys. This cannot be taken back.
          </p>
          <p>The database itself stays, with whatever else is in it.</p>
        </Ending>
      )}
    </ActionDialog>
  );
}

export function DropAction({ tenant }: Props) {
  return (
    <ActionDialog label="Drop" title={`Drop ${tenant.name}`} kind="danger">
      {(close) => (
        <Ending
          tenant={tenant}
          close={close}
          act="Drop"
          change={() => gateway('DELETE /api/tenants/{name}', { params: { name: tenant.name } })}
        >
          <p>
            The database <code>{tenant.database}</code> is dropped with everything in it: jobs, runs, logs, secrets, and
            whatever else it holds. This cannot be taken back.
          </p>
          <p>Its scheduler is stopped first; what runs is given up, and its keys are refused from then on.</p>
        </Ending>
      )}
    </ActionDialog>
  );
}

interface EndingProps extends Props {
  readonly close: () => void;
  readonly act: string;
  readonly change: () => Promise<unknown>;
  readonly children: ReactNode;
}

function Ending({ tenant: { name }, close, act, change, children }: EndingProps) {
  const [typed, setTyped] = useState('');
  const [, go] = useLocation();
  const end = useChange({
    // reading its data again would only result in 404
    outdates: keys.tenantList,
    change,
    onDone: () => {
      // the pages of this tenant no longer exist
      if (name === tenantName) location.assign('/tenants');
      else go('/tenants');
    },
  });
  return (
    <ActionForm submit={() => end.mutate()}>
      <div className="preview">{children}</div>
      <Field label={`Type the name of the tenant to go on: ${name}`}>
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            value={typed}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </Field>
      <ActionFoot
        close={close}
        act={end.isPending ? `${act}…` : act}
        kind="danger"
        disabled={end.isPending || typed !== name}
      >
        <InlineFailure error={end.error} />
      </ActionFoot>
    </ActionForm>
  );
}
