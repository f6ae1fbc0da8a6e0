/** Fires a range of instants again: shows a preview below the form, then the progress. */
import { useState } from 'react';
import { Link } from 'wouter';
import { tenant } from '../client.ts';
import { useGraph } from '../job/use-job.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { useSettled } from '../kit/settled.ts';
import { keys } from '../queries.ts';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import { BackfillFields, type BackfillDraft, planOf, startingDraft } from './backfill-fields.tsx';
import { BackfillPreview } from './backfill-preview.tsx';
import { BackfillProgress } from './backfill-progress.tsx';
import { useAction } from './use-action.ts';
import { type BackfillPlan, useBackfillPreview } from './use-backfill.ts';

interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

interface InnerProps extends Props {
  readonly close: () => void;
}

export function BackfillAction({ job }: Props) {
  return (
    <ActionDialog label="Backfill" title={`Backfill ${job.name}`} wide>
      {(close) => <BackfillSteps job={job} close={close} />}
    </ActionDialog>
  );
}

/** First the form, then the progress. */
function BackfillSteps({ job, close }: InnerProps) {
  const [made, setMade] = useState<string>();
  if (made === undefined) return <BackfillForm job={job} close={close} onMade={setMade} />;
  return (
    <BackfillProgress job={job.id} id={made}>
      <Link href={`/jobs/${job.id}/backfills?backfill=${made}`} className="button" onClick={close}>
        All backfills
      </Link>
      <button type="button" className="button" onClick={close}>
        Close
      </button>
    </BackfillProgress>
  );
}

const settleMs = 300;

function useTriggerNames(job: string): readonly string[] {
  const nodes = useGraph(job).data?.nodes ?? [];
  return nodes.filter((node) => node.kind === 'trigger' && node.job_id === job).map((node) => node.name);
}

function BackfillForm({ job, close, onMade }: InnerProps & { readonly onMade: (id: string) => void }) {
  const [draft, setDraft] = useState<BackfillDraft>(() => startingDraft(Date.now()));
  const triggers = useTriggerNames(job.id);
  const plan = planOf(draft);
  const settled = useSettled(draft, settleMs);
  const preview = useBackfillPreview(job.id, planOf(settled));
  const start = useAction({
    job: job.id,
    outdates: [keys.backfills],
    act: async (wanted: BackfillPlan) => {
      const answer = await tenant('POST /api/jobs/{id}/backfill', { params: { id: job.id }, body: wanted });
      if (!('id' in answer)) throw new Error('the server answered with a dry run instead of a backfill');
      return answer.id;
    },
    onDone: onMade,
  });
  const total = preview.data?.instants.total ?? 0;
  const isCurrent = settled === draft && !preview.isPlaceholderData && preview.isSuccess;
  return (
    <ActionForm submit={() => plan !== undefined && start.mutate(plan)}>
      <BackfillFields draft={draft} change={setDraft} triggers={triggers} />
      <BackfillPreview query={preview} isCurrent={isCurrent} isPossible={plan !== undefined} />
      {job.paused ? <p className="note warned">The job is paused: it fires nothing until it is unpaused.</p> : null}
      <ActionFoot
        close={close}
        act={start.isPending ? 'Starting…' : 'Start backfill'}
        disabled={plan === undefined || !isCurrent || total === 0 || start.isPending}
      >
        <InlineFailure error={start.error} />
      </ActionFoot>
    </ActionForm>
  );
}
