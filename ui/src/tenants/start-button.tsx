/** Starts a tenant without a dialog, because a start destroys nothing and has no effect on a running tenant. */
import { useChange } from '../admin/use-change.ts';
import { gateway } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';

export function StartButton({ name }: { readonly name: string }) {
  const start = useChange({
    outdates: keys.tenants,
    change: () => gateway('POST /api/tenants/{name}/start', { params: { name } }),
  });
  return (
    <>
      <InlineFailure error={start.error} />
      <button type="button" className="button primary" disabled={start.isPending} onClick={() => start.mutate()}>
        {start.isPending ? 'Starting…' : 'Start'}
        <span className="unseen"> {name}</span>
      </button>
    </>
  );
}
