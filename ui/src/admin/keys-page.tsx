/** The keys of the installation and their sessions. For root only. */
import { useQuery } from '@tanstack/react-query';
import { type GatewayAnswer, gateway, listAll } from '../client.ts';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { useTitle } from '../kit/title.ts';
import { keys } from '../queries.ts';
import { RootOnly } from '../session/root-only.tsx';
import { Age } from '../time/times.tsx';
import './admin.css';
import { NewKey } from './new-key.tsx';
import { Sessions } from './sessions.tsx';
import { useChange } from './use-change.ts';

type Key = GatewayAnswer<'GET /api/keys'>['items'][number];

export default function KeysPage() {
  return (
    <RootOnly>
      <Keys />
    </RootOnly>
  );
}

function Keys() {
  useTitle('Keys');
  const list = useQuery({
    queryKey: keys.accessKeys,
    queryFn: ({ signal }) => listAll((cursor, limit) => gateway('GET /api/keys', { query: { cursor, limit }, signal })),
  });
  return (
    <>
      <header className="page-head">
        <h1>Keys</h1>
        <div className="page-actions">
          <ActionDialog label="New key" title="New key" kind="primary">
            {(close) => <NewKey close={close} />}
          </ActionDialog>
        </div>
      </header>
      <p className="lede">
        A key is a name, a role and a secret. The secret is shown only once, when the key is created; only its hash is
        stored.
      </p>
      <Answer of={list} what="Reading keys">
        {({ items }) => <KeysTable items={items} />}
      </Answer>
      <Sessions />
    </>
  );
}

function KeysTable({ items }: { readonly items: readonly Key[] }) {
  return (
    <table className="table keys-table">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Role</th>
          <th scope="col">Access to</th>
          <th scope="col" className="wide">
            Created
          </th>
          <th scope="col" className="wide">
            By
          </th>
          <th scope="col">
            <span className="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((key) => (
          <tr key={key.id}>
            <th scope="row">{key.name}</th>
            <td>{key.role}</td>
            <td className="key-opens muted">{key.tenant ?? 'all tenants'}</td>
            <td className="wide muted">
              <Age at={key.created_at} />
            </td>
            <td className="wide muted">{key.created_by}</td>
            <td className="actions">
              {key.created_by === 'installation' ? (
                <ActionDialog label="Replace…" title={`Replace ${key.name}`}>
                  {(close) => <HowToReplace close={close} />}
                </ActionDialog>
              ) : (
                <ActionDialog label="Revoke" title={`Revoke ${key.name}`} kind="danger">
                  {(close) => <Revoke item={key} close={close} />}
                </ActionDialog>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The installation's own key comes from its environment or home, and is replaced there. */
function HowToReplace({ close }: { readonly close: () => void }) {
  return (
    <ActionForm submit={close}>
      <div className="preview">
        <p>
          This is the installation’s own root key, which the command line on that machine uses. To replace it, set{' '}
          <code>MILLRACE_ROOT_KEY</code> to another key, or remove the file <code>root-key</code> from the home, and
          restart the server. This ends all sessions and sign-in links.
        </p>
      </div>
      <ActionFoot close={close} />
    </ActionForm>
  );
}

function Revoke({ item, close }: { readonly item: Key; readonly close: () => void }) {
  const revoke = useChange({
    outdates: keys.accessKeys,
    change: () => gateway('DELETE /api/keys/{id}', { params: { id: item.id } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => revoke.mutate()}>
      <div className="preview">
        <p>
          Requests with <strong>{item.name}</strong> are rejected from now on, and browsers signed in with it are signed
          out. A revoked key cannot be restored.
        </p>
      </div>
      <ActionFoot close={close} act="Revoke" kind="danger" disabled={revoke.isPending}>
        <InlineFailure error={revoke.error} />
      </ActionFoot>
    </ActionForm>
  );
}
