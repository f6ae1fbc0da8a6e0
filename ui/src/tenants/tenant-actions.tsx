/** Start, stop, restart, upgrade; or install, where there is nothing yet. Stopping asks first: nothing fires after it. */
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { gateway } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { InstallAction } from './install.tsx';
import { isInstalled, type Tenant } from './standing.ts';
import { StartButton } from './start-button.tsx';
import { UpgradeAction } from './upgrade.tsx';

export function TenantActions({ tenant }: { readonly tenant: Tenant }) {
  if (!isInstalled(tenant)) {
    return (
      <div className="page-actions">
        <InstallAction tenant={tenant} />
      </div>
    );
  }
  return (
    <div className="page-actions">
      {tenant.desired === 'on' ? (
        <>
          <RestartAction name={tenant.name} />
          <StopAction name={tenant.name} />
        </>
      ) : null}
      <UpgradeAction tenant={tenant} />
      {tenant.desired === 'off' ? <StartButton name={tenant.name} /> : null}
    </div>
  );
}

function RestartAction({ name }: { readonly name: string }) {
  return (
    <ActionDialog label="Restart" title={`Restart ${name}`}>
      {(close) => (
        <Sure
          act="Restart"
          close={close}
          change={() => gateway('POST /api/tenants/{name}/restart', { params: { name } })}
          words="Its scheduler stops and starts again within moments, in the same slot. Running tasks continue; triggers that are due meanwhile fire a little late."
        />
      )}
    </ActionDialog>
  );
}

function StopAction({ name }: { readonly name: string }) {
  return (
    <ActionDialog label="Stop" title={`Stop ${name}`}>
      {(close) => (
        <Sure
          act="Stop"
          close={close}
          change={() => gateway('POST /api/tenants/{name}/stop', { params: { name } })}
          words="Its scheduler ends: nothing fires and nothing new is queued until somebody starts it again. Its pages and its API go on answering, and what runs goes on."
        />
      )}
    </ActionDialog>
  );
}

interface SureProps {
  readonly act: string;
  readonly words: string;
  readonly change: () => Promise<unknown>;
  readonly close: () => void;
}

function Sure({ act, words, change, close }: SureProps) {
  const order = useChange({ outdates: keys.tenants, change, onDone: close });
  return (
    <ActionForm submit={() => order.mutate()}>
      <p className="preview">{words}</p>
      <ActionFoot close={close} act={order.isPending ? `${act}…` : act} disabled={order.isPending}>
        <InlineFailure error={order.error} />
      </ActionFoot>
    </ActionForm>
  );
}
