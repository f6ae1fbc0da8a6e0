/** Pauses or unpauses a job: what runs finishes, what is queued waits. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { tenant } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';

interface Props {
  readonly id: string;
  readonly name: string;
  readonly paused: boolean;
}

export function PauseButton({ id, name, paused }: Props) {
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: () => tenant('PUT /api/jobs/{id}/paused', { params: { id }, body: { paused: !paused } }),
    onSuccess: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.jobs }),
        client.invalidateQueries({ queryKey: keys.job(id) }),
      ]),
  });
  const verb = paused ? 'Unpause' : 'Pause';
  return (
    <>
      <InlineFailure error={change.error} />
      <button
        type="button"
        className="button"
        aria-label={`${verb} ${name}`}
        disabled={change.isPending}
        onClick={() => change.mutate()}
      >
        {verb}
      </button>
    </>
  );
}
