/** Runs a job now, with the parameters its document gives. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { tenant } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';

export function RunButton({ id, paused }: { readonly id: string; readonly paused: boolean }) {
  const client = useQueryClient();
  const run = useMutation({
    mutationFn: () => tenant('POST /api/jobs/{id}/run', { params: { id }, body: {} }),
    onSuccess: () => client.invalidateQueries({ queryKey: keys.job(id) }),
  });
  return (
    <>
      <InlineFailure error={run.error} />
      <button
        type="button"
        className="button primary"
        title={paused ? 'a paused job starts nothing' : undefined}
        disabled={paused || run.isPending}
        onClick={() => run.mutate()}
      >
        Run now
      </button>
    </>
  );
}
