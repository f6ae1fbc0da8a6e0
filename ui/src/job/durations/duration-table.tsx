/** Durations of each task: typical, worst, latest, and all of them as a small chart. */
import { formatSpan } from '../../time/format.ts';
import type { TaskStats } from './stats.ts';

interface Props {
  readonly tasks: readonly TaskStats[];
  readonly chosen: string;
  readonly choose: (name: string) => void;
}

const inWords = (seconds: number): string => formatSpan(seconds * 1_000);

export function DurationTable({ tasks, chosen, choose }: Props) {
  return (
    <table className="table duration-table">
      <thead>
        <tr>
          <th scope="col">Task</th>
          <th scope="col" className="wide">
            Over time
          </th>
          <th scope="col" className="number">
            Median
          </th>
          <th scope="col" className="number wide">
            95 %
          </th>
          <th scope="col" className="number">
            Longest
          </th>
          <th scope="col" className="number">
            Latest
          </th>
          <th scope="col" className="number wide">
            Instants
          </th>
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <tr key={task.name} data-chosen={task.name === chosen ? '' : undefined}>
            <th scope="row">
              <button
                type="button"
                className="duration-name"
                aria-pressed={task.name === chosen}
                onClick={() => choose(task.name === chosen ? '' : task.name)}
              >
                {task.name}
              </button>
            </th>
            <td className="wide">
              <Curve task={task} />
            </td>
            <td className="number">{inWords(task.p50)}</td>
            <td className="number wide">{inWords(task.p95)}</td>
            <td className="number">{inWords(task.max)}</td>
            <td className="number">{inWords(task.latest)}</td>
            <td className="number wide muted">{task.runs}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const height = 20;

/** One thin bar for each instant; its height is relative to the task's longest duration. */
function Curve({ task: { series, max } }: { readonly task: TaskStats }) {
  const path = series
    .map((value, i) =>
      value === undefined ? '' : `M${i + 0.5} ${height}V${height - Math.max(1, (value / (max || 1)) * height)}`,
    )
    .join('');
  return (
    <svg
      className="duration-curve"
      viewBox={`0 0 ${series.length} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={path} />
    </svg>
  );
}
