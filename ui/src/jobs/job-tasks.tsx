/** The tasks of a job, what each comes after, and how its newest run stands. */
import { Link } from 'wouter';
import { Empty } from '../kit/empty.tsx';
import { Failure } from '../kit/failure.tsx';
import { Loading } from '../kit/loading.tsx';
import { State } from '../kit/state.tsx';
import { type Run, useRunsOf } from '../runs/use-runs.ts';
import { Age } from '../time/times.tsx';
import { type Graph, useGraph } from './use-job.ts';

type Node = Graph['nodes'][number];
type Edge = Graph['edges'][number];

const words: Readonly<Record<Edge['kind'], string>> = {
  trigger: 'trigger',
  success: 'success of',
  failure: 'failure of',
  done: 'end of',
};
const newestRuns = 200;

export function JobTasks({ job }: { readonly job: string }) {
  const { data: graph, error, refetch } = useGraph(job);
  const runs = useRunsOf(job, { limit: newestRuns }).data?.items ?? [];
  if (graph === undefined) {
    return error === null ? <Loading what="Reading tasks" /> : <Failure error={error} retry={refetch} />;
  }
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const tasks = graph.nodes.filter((node) => node.kind === 'task' && node.job_id === job);
  if (tasks.length === 0) return <Empty title="This job has no tasks" />;
  return (
    <table className="table tasks-table">
      <thead>
        <tr>
          <th scope="col">Task</th>
          <th scope="col">Comes after</th>
          <th scope="col">Newest run</th>
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <tr key={task.id}>
            <th scope="row">{task.name}</th>
            <td>
              <Parents edges={graph.edges.filter((edge) => edge.to === task.id)} nodes={nodes} job={job} />
            </td>
            <td>
              <NewestRun run={runs.find((run) => run.task?.id === task.id)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface ParentsProps {
  readonly edges: readonly Edge[];
  readonly nodes: ReadonlyMap<string, Node>;
  readonly job: string;
}

function Parents({ edges, nodes, job }: ParentsProps) {
  if (edges.length === 0) return <span className="muted">nothing: it runs when asked to</span>;
  return (
    <ul className="parents">
      {edges.map((edge) => {
        const parent = nodes.get(edge.from);
        const name = parent?.name ?? edge.from;
        return (
          <li key={`${edge.kind} ${edge.from}`} data-kind={edge.kind}>
            <span className="muted">{words[edge.kind]}</span>{' '}
            {parent === undefined || parent.job_id === job ? name : <Link href={`/jobs/${parent.job_id}`}>{name}</Link>}
          </li>
        );
      })}
    </ul>
  );
}

function NewestRun({ run }: { readonly run: Run | undefined }) {
  if (run === undefined) return <span className="muted">–</span>;
  return (
    <Link href={`/runs/${run.id}`} className="quiet">
      <State state={run.state} />{' '}
      <span className="muted">
        <Age at={run.finished_at ?? run.started_at ?? run.queued_at} />
      </span>
    </Link>
  );
}
