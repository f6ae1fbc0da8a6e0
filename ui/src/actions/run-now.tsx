/** Runs a job now, with parameters. */
import { useState } from 'react';
import { Link } from 'wouter';
import { tenant } from '../client.ts';
import { useDocument, useGraph } from '../job/use-job.ts';
import { Answer } from '../kit/answer.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { Instant } from '../time/times.tsx';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import { firstTasks } from './first-tasks.ts';
import { InstantField } from './instant-field.tsx';
import { parseInstant } from './instant-text.ts';
import { draftOf, type Json, paramsOf, paramsToSend } from './params.ts';
import { ParamsField } from './params-field.tsx';
import { type Priority, PriorityField } from './priority-field.tsx';
import { useAction } from './use-action.ts';

interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
}

export function RunNowAction({ job }: Props) {
  return (
    <ActionDialog label="Run now" title={`Run ${job.name}`} kind="primary">
      {(close) => <RunNow job={job} close={close} />}
    </ActionDialog>
  );
}

interface InnerProps extends Props {
  readonly close: () => void;
}

function RunNow({ job, close }: InnerProps) {
  const known = useDocument(job.id);
  return (
    <Answer of={known} what="Reading the job">
      {(document) => <RunForm job={job} standard={paramsOf(document)} close={close} />}
    </Answer>
  );
}

function RunForm({ job, standard, close }: InnerProps & { readonly standard: Readonly<Record<string, Json>> }) {
  const [draft, setDraft] = useState(() => draftOf(standard));
  const [at, setAt] = useState('');
  const [priority, setPriority] = useState<Priority>('high');
  const params = paramsToSend(standard, draft);
  const instant = at.trim() === '' ? undefined : parseInstant(at);
  const isReady = params !== undefined && (at.trim() === '' || instant !== undefined) && !job.paused;
  const run = useAction({
    job: job.id,
    act: () =>
      tenant('POST /api/jobs/{id}/run', {
        params: { id: job.id },
        body: { params: { ...params }, priority, ...(instant === undefined ? {} : { instant }) },
      }),
  });
  if (run.data !== undefined) return <Started job={job} started={run.data} close={close} />;
  return (
    <ActionForm submit={() => run.mutate()}>
      <ParamsField standard={standard} draft={draft} change={setDraft} />
      <div className="fields">
        <InstantField label="Instant" value={at} change={setAt} empty="Leave empty for now" />
        <PriorityField value={priority} change={setPriority} />
      </div>
      <WillStart job={job} />
      <ActionFoot close={close} act={run.isPending ? 'Starting…' : 'Run now'} disabled={!isReady || run.isPending}>
        <InlineFailure error={run.error} />
      </ActionFoot>
    </ActionForm>
  );
}

const maxNamed = 12;

function WillStart({ job }: Props) {
  const graph = useGraph(job.id);
  if (job.paused) return <p className="note warned">The job is paused. Unpause it to run it.</p>;
  return (
    <Answer of={graph} what="Reading the graph">
      {(data) => {
        const tasks = firstTasks(data, job.id);
        if (tasks.length === 0) return <p className="note">Every task waits for another one of this job.</p>;
        return (
          <div className="preview">
            <p>{tasks.length === 1 ? 'This task starts' : `These ${tasks.length} tasks start`} at once:</p>
            <p className="preview-list">
              {tasks.slice(0, maxNamed).map((name) => (
                <strong key={name}>{name}</strong>
              ))}
              {tasks.length > maxNamed ? <span>… and {tasks.length - maxNamed} more</span> : null}
            </p>
            <p className="muted">The others follow as they do when a trigger fires.</p>
          </div>
        );
      }}
    </Answer>
  );
}

interface StartedProps extends InnerProps {
  readonly started: { readonly instant: string; readonly runs: readonly string[] };
}

function Started({ job, started, close }: StartedProps) {
  const { instant, runs } = started;
  return (
    <div className="action-form">
      <p role="status">
        {runs.length === 1 ? '1 run' : `${runs.length} runs`} queued at <Instant at={instant} />.
      </p>
      <ActionFoot close={close}>
        <Link
          href={`/jobs/${job.id}?instant=${encodeURIComponent(instant)}`}
          className="button primary"
          onClick={close}
        >
          See it in the graph
        </Link>
      </ActionFoot>
    </div>
  );
}
