/** Pools: places shared by tasks of several jobs. Operators change their number. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { listAll, type TenantAnswer, tenant } from '../client.ts';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { useChange } from './use-change.ts';

type Pool = TenantAnswer<'GET /api/pools'>['items'][number];

export function Pools() {
  const pools = useQuery({
    queryKey: keys.pools,
    queryFn: ({ signal }) => listAll((cursor, limit) => tenant('GET /api/pools', { query: { cursor, limit }, signal })),
  });
  return (
    <section aria-labelledby="pools">
      <header className="settings-head">
        <h2 id="pools">Pools</h2>
        <ActionDialog label="New pool" title="New pool">
          {(close) => <PoolForm close={close} />}
        </ActionDialog>
      </header>
      <Answer of={pools} what="Reading pools">
        {({ items }) =>
          items.length === 0 ? (
            <p className="muted">No pools yet. A task that names a pool starts only when the pool has a free place.</p>
          ) : (
            <PoolsTable items={items} />
          )
        }
      </Answer>
    </section>
  );
}

function PoolsTable({ items }: { readonly items: readonly Pool[] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Pool</th>
          <th scope="col" className="number">
            Used
          </th>
          <th scope="col" className="number">
            Places
          </th>
          <th scope="col" className="number">
            Waiting
          </th>
          <th scope="col">
            <span className="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((pool) => (
          <tr key={pool.name}>
            <th scope="row">{pool.name}</th>
            <td className="number">{pool.used}</td>
            <td className="number">{pool.places}</td>
            <td className="number">{pool.waiting}</td>
            <td className="actions">
              <ActionDialog label="Change" title={`Places of ${pool.name}`}>
                {(close) => <PoolForm pool={pool} close={close} />}
              </ActionDialog>
              <ActionDialog label="Delete" title={`Delete ${pool.name}`} kind="danger">
                {(close) => <PoolDeletion name={pool.name} close={close} />}
              </ActionDialog>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The form for a new pool, or for the places of an existing one. */
function PoolForm({ pool, close }: { readonly pool?: Pool; readonly close: () => void }) {
  const [name, setName] = useState(pool?.name ?? '');
  const [places, setPlaces] = useState(String(pool?.places ?? 1));
  const wanted = /^\d{1,7}$/.test(places) ? Number(places) : undefined;
  const save = usePoolChange(close, () =>
    tenant('PUT /api/pools/{name}', { params: { name: name.trim() }, body: { places: wanted ?? 0 } }),
  );
  return (
    <ActionForm submit={() => save.mutate()}>
      {pool === undefined ? (
        <Field label="Name" hint="Tasks name it in their document: pool: name">
          {(wiring) => (
            <input
              {...wiring}
              className="input"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
      ) : null}
      <Field
        label="Places"
        hint="Maximum number of runs at a time. With 0, no run that needs the pool starts; running ones continue."
        fault={wanted === undefined ? 'Enter a whole number.' : undefined}
      >
        {(wiring) => (
          <input
            {...wiring}
            className="input"
            inputMode="numeric"
            value={places}
            onChange={(event) => setPlaces(event.currentTarget.value)}
          />
        )}
      </Field>
      <ActionFoot close={close} act="Save" disabled={save.isPending || wanted === undefined || name.trim() === ''}>
        <InlineFailure error={save.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function PoolDeletion({ name, close }: { readonly name: string; readonly close: () => void }) {
  const remove = usePoolChange(close, () => tenant('DELETE /api/pools/{name}', { params: { name } }));
  return (
    <ActionForm submit={() => remove.mutate()}>
      <p className="preview">A pool that a task still names cannot be deleted.</p>
      <ActionFoot close={close} act="Delete pool" kind="danger" disabled={remove.isPending}>
        <InlineFailure error={remove.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function usePoolChange(close: () => void, change: () => Promise<unknown>) {
  return useChange({ outdates: keys.pools, change, onDone: close });
}
