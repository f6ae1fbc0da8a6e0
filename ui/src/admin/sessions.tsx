/** Signed-in browsers, each with its key. Ending a session signs its browser out at once. */
import { useQuery } from '@tanstack/react-query';
import { type GatewayAnswer, gateway, listAll } from '../client.ts';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { Empty } from '../kit/empty.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { Age, Due } from '../time/times.tsx';
import './admin.css';
import { useChange } from './use-change.ts';

type Session = GatewayAnswer<'GET /api/sessions'>['items'][number];

/** The control database sends no live changes, so the list is polled. */
const refetchMs = 10_000;

/** The last used first. */
async function fetchSessions(signal: AbortSignal) {
  const { items } = await listAll((cursor, limit) =>
    gateway('GET /api/sessions', { query: { cursor, limit }, signal }),
  );
  return { items: items.toSorted((a, b) => Date.parse(b.used_at) - Date.parse(a.used_at)) };
}

export function Sessions() {
  const list = useQuery({
    queryKey: keys.sessions,
    queryFn: ({ signal }) => fetchSessions(signal),
    refetchInterval: refetchMs,
  });
  const others = list.data?.items.filter(({ current }) => !current).length ?? 0;
  return (
    <section className="sessions" aria-labelledby="sessions">
      <header className="settings-head">
        <h2 id="sessions">Sessions</h2>
        <ActionDialog label="End all others" title="End all other sessions" kind="danger" offered={others > 0}>
          {(close) => <EndOthers close={close} />}
        </ActionDialog>
      </header>
      <p className="muted">Signed-in browsers. A session ends twelve hours after its last use.</p>
      <Answer of={list} what="Reading sessions">
        {({ items }) => (items.length === 0 ? <Empty title="No sessions" /> : <SessionsTable items={items} />)}
      </Answer>
    </section>
  );
}

function SessionsTable({ items }: { readonly items: readonly Session[] }) {
  return (
    <table className="table keys-table">
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col">Role</th>
          <th scope="col" className="wide">
            Access to
          </th>
          <th scope="col" className="wide">
            Since
          </th>
          <th scope="col">Last used</th>
          <th scope="col" className="wide">
            Ends
          </th>
          <th scope="col">
            <span className="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((session) => (
          <SessionRow key={session.id} session={session} />
        ))}
      </tbody>
    </table>
  );
}

function SessionRow({ session }: { readonly session: Session }) {
  const { key, role, tenant, opened_with, created_at, used_at, expires_at, current } = session;
  return (
    <tr>
      <th scope="row">
        {key.name}
        {opened_with === 'link' ? <span className="muted"> by a sign-in link</span> : null}{' '}
        {current ? <span className="tag">this browser</span> : null}
      </th>
      <td>{role}</td>
      <td className="key-opens wide muted">{tenant ?? 'all tenants'}</td>
      <td className="wide muted">
        <Age at={created_at} />
      </td>
      <td className="muted">
        <Age at={used_at} />
      </td>
      <td className="wide muted">
        <Due at={expires_at} />
      </td>
      <td className="actions">
        {current ? null : (
          <ActionDialog label="End" title={`End a session of ${key.name}`} kind="danger">
            {(close) => <EndOne session={session} close={close} />}
          </ActionDialog>
        )}
      </td>
    </tr>
  );
}

interface EndProps {
  readonly close: () => void;
}

function EndOne({ session, close }: EndProps & { readonly session: Session }) {
  const end = useChange({
    outdates: keys.sessions,
    change: () => gateway('DELETE /api/sessions/{id}', { params: { id: session.id } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => end.mutate()}>
      <div className="preview">
        <p>
          This browser is signed out at once. The key <strong>{session.key.name}</strong> stays valid; revoke it to keep
          its owner from signing in again.
        </p>
      </div>
      <ActionFoot close={close} act="End session" kind="danger" disabled={end.isPending}>
        <InlineFailure error={end.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function EndOthers({ close }: EndProps) {
  const end = useChange({
    outdates: keys.sessions,
    change: () => gateway('DELETE /api/sessions'),
    onDone: close,
  });
  return (
    <ActionForm submit={() => end.mutate()}>
      <div className="preview">
        <p>Every browser but this one is signed out at once. Keys stay valid.</p>
      </div>
      <ActionFoot close={close} act="End all others" kind="danger" disabled={end.isPending}>
        <InlineFailure error={end.error} />
      </ActionFoot>
    </ActionForm>
  );
}
