/** The grid of a job: instants by tasks, newest first, or around the time in the address (`?at=`). */
import { useState } from 'react';
import { State } from '../../kit/state.tsx';
import { useUrlState } from '../../kit/url-state.ts';
import { InstantPanel } from '../instant-panel.tsx';
import type { JobViewProps } from '../use-job.ts';
import '../state-colours.css';
import { TokenPanel } from '../token-panel.tsx';
import { useGraph } from '../use-job.ts';
import { useSelection } from '../use-selection.ts';
import { shownStates } from './cells.tsx';
import './grid.css';
import { GridTable } from './grid-table.tsx';

const oldest = '1000-01-01T00:00';

/** A time in UTC as a time field writes it; undefined if the text is not a time. */
function parsed(at: string): number | undefined {
  const ms = Date.parse(/[zZ]|[+-]\d\d:\d\d$/.test(at) ? at : `${at}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}

export default function GridView({ job }: JobViewProps) {
  const [at, setAt] = useUrlState('at');
  const [opened, setOpened] = useState(Date.now);
  // reopens the grid at the newest instant, also if the user has only scrolled away from it
  const goToNewest = (): void => {
    setOpened(Date.now());
    setAt('');
  };
  const { instant, task: chosen, select } = useSelection();
  const task = useGraph(job.id).data?.nodes.find(({ id, kind }) => id === chosen && kind === 'task');
  const start = at === '' ? opened : (parsed(at) ?? opened);
  return (
    <section aria-label="Grid">
      <div className="grid-bar">
        <label>
          Go to <input type="datetime-local" value={at} onChange={(event) => setAt(event.currentTarget.value)} /> UTC
        </label>
        <button type="button" className="button" aria-pressed={at === ''} onClick={goToNewest}>
          Newest
        </button>
        <button type="button" className="button" aria-pressed={at === oldest} onClick={() => setAt(oldest)}>
          Oldest
        </button>
        <Legend />
      </div>
      <div className="with-panel">
        <div>
          <GridTable
            key={start}
            job={job.id}
            at={start}
            follow={at === ''}
            chosen={{ instant, task: chosen }}
            open={(instant, task) => select({ instant, task: task?.id })}
          />
        </div>
        {instant === undefined ? null : task === undefined ? (
          <InstantPanel job={job} instant={instant} close={() => select({ instant: undefined, task: undefined })} />
        ) : (
          <TokenPanel
            job={job}
            task={task}
            instant={instant}
            close={() => select({ instant: undefined, task: undefined })}
          />
        )}
      </div>
    </section>
  );
}

function Legend() {
  return (
    <ul className="grid-legend" aria-label="States">
      {shownStates.map((state) => (
        <li key={state}>
          <State state={state} />
        </li>
      ))}
    </ul>
  );
}
