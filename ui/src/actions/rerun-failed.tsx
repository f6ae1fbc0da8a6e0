/** Re-runs every token whose last run ended in failure, timeout or error. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { formatInstant } from '../time/format.ts';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import { type Priority, PriorityField } from './priority-field.tsx';
import { TokenList } from './token-list.tsx';
import { useAction } from './use-action.ts';

interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
  /** Only this instant; without it, all instants within the chosen span. */
  readonly instant?: string;
}

export function RerunFailedAction(props: Props) {
  const of = props.instant === undefined ? props.job.name : formatInstant(props.instant);
  return (
    <ActionDialog label="Re-run failed" title={`Re-run failed tasks · ${of}`}>
      {(close) => <Rerun {...props} close={close} />}
    </ActionDialog>
  );
}

const spans = [
  { value: '24', label: 'Last 24 hours' },
  { value: '168', label: 'Last 7 days' },
  { value: '720', label: 'Last 30 days' },
  { value: '', label: 'All instants' },
] as const;

const failed = ['failure', 'timeout', 'error'] as const;
const hourMs = 3_600_000;

/** The instants as the API expects them. The end is open, to include the newest failures. */
function instantFilter(instant: string | undefined, hours: string, openedAtMs: number) {
  if (instant !== undefined) return { instants: [instant] };
  return hours === '' ? {} : { first: new Date(openedAtMs - Number(hours) * hourMs).toISOString() };
}

function Rerun({ job, instant, close }: Props & { readonly close: () => void }) {
  const [openedAtMs] = useState(() => Date.now());
  const [hours, setHours] = useState<string>('24');
  const [priority, setPriority] = useState<Priority>('normal');
  const filter = { states: [...failed], ...instantFilter(instant, hours, openedAtMs) };
  const ask = (more: { dry_run?: boolean; priority?: Priority }, signal?: AbortSignal) =>
    tenant('POST /api/jobs/{id}/activate', {
      params: { id: job.id },
      body: { ...filter, ...more },
      ...(signal === undefined ? {} : { signal }),
    });
  const preview = useQuery({
    queryKey: ['failed tokens', job.id, filter],
    queryFn: ({ signal }) => ask({ dry_run: true }, signal),
    staleTime: 0,
    gcTime: 0,
  });
  const rerun = useAction({ job: job.id, act: () => ask({ priority }) });
  if (rerun.data !== undefined) {
    return (
      <div className="action-form">
        <p role="status">{rerun.data.tokens === 1 ? '1 task runs' : `${rerun.data.tokens} tasks run`} again.</p>
        <ActionFoot close={close} />
      </div>
    );
  }
  const count = preview.data?.tokens ?? 0;
  return (
    <ActionForm submit={() => rerun.mutate()}>
      {instant === undefined ? <Choice label="Which instants" options={spans} value={hours} change={setHours} /> : null}
      <Answer of={preview} what="Looking for failed tasks">
        {(data) => (
          <div className="preview">
            <p>
              {data.tokens === 0 ? (
                'No failed tasks there, or all have succeeded since.'
              ) : (
                <>
                  <strong>{data.tokens.toLocaleString('en')}</strong> {data.tokens === 1 ? 'task runs' : 'tasks run'}{' '}
                  again; tasks that depend on {data.tokens === 1 ? 'it' : 'them'} follow.
                </>
              )}
            </p>
            {data.tokens === 0 ? null : <TokenList tokens={data.items ?? []} total={data.tokens} />}
          </div>
        )}
      </Answer>
      {job.paused ? <p className="note warned">The job is paused: the runs wait until it is unpaused.</p> : null}
      <PriorityField value={priority} change={setPriority} />
      <ActionFoot
        close={close}
        act={rerun.isPending ? 'Starting…' : 'Run them again'}
        disabled={count === 0 || rerun.isPending}
      >
        <InlineFailure error={rerun.error} />
      </ActionFoot>
    </ActionForm>
  );
}
