/** Cancels a run: a queued one ends at once, a running one is killed by its worker. Asks twice, as it cannot be undone. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { tenant } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';

export function CancelButton({ id }: { readonly id: string }) {
  const client = useQueryClient();
  const [isSure, setSure] = useState(false);
  const cancel = useMutation({
    mutationFn: () => tenant('POST /api/runs/{id}/cancel', { params: { id } }),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.run(id) }),
  });
  if (cancel.isPending || cancel.isSuccess) return <span className="muted">Cancelling…</span>;
  if (!isSure) {
    return (
      <>
        <InlineFailure error={cancel.error} />
        <button type="button" className="button" onClick={() => setSure(true)}>
          Cancel run
        </button>
      </>
    );
  }
  return (
    <>
      <button
        type="button"
        className="button danger"
        onClick={() => cancel.mutate()}
        onBlur={() => setSure(false)}
        autoFocus
      >
        Kill it
      </button>
    </>
  );
}
