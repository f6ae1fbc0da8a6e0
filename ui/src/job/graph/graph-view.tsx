/** The graph of a job, coloured by the tokens of one instant as they change. A task opens beside it. */
import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { Answer } from '../../kit/answer.tsx';
import { Empty } from '../../kit/empty.tsx';
import { Failure } from '../../kit/failure.tsx';
import { InstantPicker, type Picked, usePickedInstant } from '../instant-picker.tsx';
import type { JobViewProps } from '../use-job.ts';
import { TokenPanel } from '../token-panel.tsx';
import { type Graph, type Job, useGraph, useTokensAt } from '../use-job.ts';
import { useSelection } from '../use-selection.ts';
import '../state-colours.css';
import './graph.css';
import { GraphCanvas } from './graph-canvas.tsx';
import type { GraphNode } from './graph-node.tsx';

export default function GraphView({ job }: JobViewProps) {
  return (
    <Answer of={useGraph(job.id)} what="Reading the graph">
      {(graph) =>
        graph.nodes.length === 0 ? <Empty title="This job has no tasks" /> : <GraphAtInstant job={job} graph={graph} />
      }
    </Answer>
  );
}

/** The state of each task that has begun. Unknown is not the same as not begun. */
function useStates(job: string, { instant, instants, error, refetch }: Picked) {
  const tokens = useTokensAt(job, instant);
  const hasNone = instant === undefined && instants !== undefined;
  const known = hasNone ? none : tokens.data;
  const states = useMemo(() => known && new Map(known.map(({ task_id, state }) => [task_id, state])), [known]);
  const failed = instant === undefined ? { error, refetch } : tokens;
  return { states, hasNone, error: states === undefined ? failed.error : null, refetch: failed.refetch };
}

const none: readonly never[] = [];

function GraphAtInstant({ job, graph }: { readonly job: Job; readonly graph: Graph }) {
  const picked = usePickedInstant(job.id, graph.nodes.length);
  const { task: chosen, select } = useSelection();
  const [, navigate] = useLocation();
  const { states, hasNone, error, refetch } = useStates(job.id, picked);
  const task = graph.nodes.find(({ id, kind, job_id }) => id === chosen && kind === 'task' && job_id === job.id);

  const open = (node: GraphNode): void => {
    if (node.job_id !== job.id) navigate(`/jobs/${node.job_id}`);
    else if (node.kind === 'trigger') navigate(`/jobs/${job.id}/triggers`);
    else select({ task: node.id === chosen ? undefined : node.id });
  };
  return (
    <section aria-label="Graph">
      {hasNone ? (
        <p className="muted graph-none">Nothing has run yet. States show here the moment a trigger fires.</p>
      ) : (
        <InstantPicker picked={picked} />
      )}
      {error === null ? null : <Failure error={error} retry={refetch} />}
      {graph.complete ? null : (
        <p className="muted">Only some of the tasks of other jobs that depend on this job are shown.</p>
      )}
      <div className="with-panel">
        <GraphCanvas job={job.id} graph={graph} states={states} chosen={task?.id} open={open} />
        {task === undefined || error !== null || (picked.instant === undefined && !hasNone) ? null : (
          <TokenPanel job={job} task={task} instant={picked.instant} close={() => select({ task: undefined })} />
        )}
      </div>
    </section>
  );
}
