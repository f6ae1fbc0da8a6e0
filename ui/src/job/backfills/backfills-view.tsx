/** The backfills of a job with their progress, newest first; `?backfill=` opens one. */
import { BackfillAction } from '../../actions/backfill.tsx';
import { BackfillBar, BackfillProgress } from '../../actions/backfill-progress.tsx';
import { useBackfills } from '../../actions/use-backfill.ts';
import type { TenantAnswer } from '../../client.ts';
import { Answer } from '../../kit/answer.tsx';
import { Empty } from '../../kit/empty.tsx';
import { useShown, useUrlState } from '../../kit/url-state.ts';
import { Age, Instant } from '../../time/times.tsx';
import type { JobViewProps } from '../use-job.ts';
import './backfills.css';

type Outline = TenantAnswer<'GET /api/jobs/{id}/backfills'>['items'][number];

const firstRows = 25;
const maxRows = 1_000;
/** Number of running backfills that show their runs; each needs a request of its own. */
const maxDetailed = 3;

export default function BackfillsView({ job }: JobViewProps) {
  const [shown, showMore] = useShown(firstRows, maxRows);
  const [opened, open] = useUrlState('backfill');
  const backfills = useBackfills(job.id, shown);
  return (
    <Answer of={backfills} what="Reading backfills">
      {({ items, next }) => (
        <section aria-label="Backfills">
          {items.length === 0 ? <NoBackfills job={job} /> : null}
          <ul className="backfills">
            {items.map((backfill, i) => (
              <BackfillItem
                key={backfill.id}
                job={job.id}
                backfill={backfill}
                isOpen={backfill.id === opened}
                isDetailed={backfill.state === 'running' && i < maxDetailed}
                toggle={() => open(backfill.id === opened ? '' : backfill.id)}
              />
            ))}
          </ul>
          {/* a link to a backfill works even if the list does not reach it */}
          {opened === '' || items.some(({ id }) => id === opened) ? null : (
            <BackfillProgress job={job.id} id={opened} />
          )}
          {next === null || shown === maxRows ? null : (
            <button type="button" className="button more" onClick={showMore}>
              Show older backfills
            </button>
          )}
        </section>
      )}
    </Answer>
  );
}

function NoBackfills({ job }: JobViewProps) {
  return (
    <Empty title="No backfills yet">
      <p>A backfill fires a range of instants again: after a fix, or for days before the job existed.</p>
      <BackfillAction job={job} />
    </Empty>
  );
}

const words = { running: 'under way', done: 'done', cancelled: 'cancelled' } as const;
const orderWords = { earliest: 'earliest first', latest: 'latest first', random: 'in random order' } as const;

interface ItemProps {
  readonly job: string;
  readonly backfill: Outline;
  readonly isOpen: boolean;
  readonly isDetailed: boolean;
  readonly toggle: () => void;
}

function BackfillItem({ job, backfill, isOpen, isDetailed, toggle }: ItemProps) {
  const { id, name, first, last, instants, state, created_at: createdAt, by, triggers, order, priority } = backfill;
  return (
    <li>
      <button type="button" className="backfill-head" aria-expanded={isOpen} onClick={toggle}>
        <span className="backfill-name">
          {name ?? 'Unnamed'} <span className="tag">{words[state]}</span>
        </span>
        <span>
          <Instant at={first} /> to <Instant at={last} />
        </span>
        <span className="muted">
          {instants.fired.toLocaleString('en')} of {instants.total.toLocaleString('en')} fired
        </span>
        <span className="muted">
          <Age at={createdAt} /> by {by}
        </span>
      </button>
      {isOpen ? null : isDetailed ? <BackfillProgress job={job} id={id} /> : <BackfillBar backfill={backfill} />}
      {isOpen ? (
        <>
          <p className="note">
            {triggers.length === 1 ? 'Trigger' : 'Triggers'} {triggers.join(', ')}; {orderWords[order]}, priority{' '}
            {priority}
            {backfill.only === 'missing' ? ', only what had not fired before' : ''}.
          </p>
          <BackfillProgress job={job} id={id} />
        </>
      ) : null}
    </li>
  );
}
