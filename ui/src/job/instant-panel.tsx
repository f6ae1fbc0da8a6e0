/** One instant of a job: the states of its tokens, links to other views, and actions. */
import { Link } from 'wouter';
import { ClearInstantAction } from '../actions/clear-instant.tsx';
import { RerunFailedAction } from '../actions/rerun-failed.tsx';
import { Answer } from '../kit/answer.tsx';
import { State } from '../kit/state.tsx';
import { useMayOperate } from '../session/session.ts';
import { formatInstant } from '../time/format.ts';
import { SidePanel } from '../kit/side-panel.tsx';
import { type Job, useTokensAt } from './use-job.ts';
import { instantHref } from './use-selection.ts';

interface Props {
  readonly job: Job;
  readonly instant: string;
  readonly close: () => void;
}

const failed = new Set(['failure', 'timeout', 'error']);

export function InstantPanel({ job, instant, close }: Props) {
  const mayOperate = useMayOperate();
  const tokens = useTokensAt(job.id, instant);
  const counts = new Map<NonNullable<typeof tokens.data>[number]['state'], number>();
  for (const { state } of tokens.data ?? []) counts.set(state, (counts.get(state) ?? 0) + 1);
  return (
    <SidePanel title={formatInstant(instant)} close={close}>
      <Answer of={tokens} what="Reading the instant">
        {() => (
          <ul className="side-panel-facts">
            {counts.size === 0 ? <li className="muted">Nothing has begun at this instant.</li> : null}
            {[...counts].map(([state, count]) => (
              <li key={state}>
                {count} <State state={state} />
              </li>
            ))}
          </ul>
        )}
      </Answer>
      <p className="side-panel-facts">
        <Link href={instantHref(job.id, '', instant)}>Graph</Link>
        <Link href={instantHref(job.id, 'timeline', instant)}>Timeline</Link>
      </p>
      {mayOperate ? (
        <div className="side-panel-actions">
          {[...counts.keys()].some((state) => failed.has(state)) ? (
            <RerunFailedAction job={job} instant={instant} />
          ) : null}
          <ClearInstantAction job={job} instant={instant} />
        </div>
      ) : null}
    </SidePanel>
  );
}
