/** Describes what triggers do at once when a document is applied or a job is unpaused. */
import type { TenantAnswer } from '../client.ts';
import { Due, Instant } from '../time/times.tsx';
import './actions.css';

export type Outlook = NonNullable<TenantAnswer<'POST /api/jobs'>['outlook']>;
type Trigger = Outlook['triggers'][number];

/** Whether anything fires at once. */
export function setsOff({ triggers }: Outlook): boolean {
  return triggers.some(({ fires, caught_up: caughtUp }) => fires.length > 0 || caughtUp.total > 0);
}

export function SetOff({ outlook }: { readonly outlook: Outlook }) {
  return (
    <div className="preview">
      {outlook.paused ? <p>The job is paused: none of this happens until it is unpaused.</p> : null}
      {outlook.triggers.length === 0 ? <p>The job has no trigger. It runs only when someone runs it.</p> : null}
      <ul className="set-off">
        {outlook.triggers.map((trigger) => (
          <li key={trigger.name}>
            <strong>{trigger.name}</strong> {sentences(trigger).join(', ')}
            <Listed trigger={trigger} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function many(count: number): string {
  return count === 1 ? '1 instant' : `${count.toLocaleString('en')} instants`;
}

function sentences({ fires, caught_up: caughtUp, skipped, under_way: underWay }: Trigger): string[] {
  const parts = [
    ...(fires.length > 0 ? [`fires ${many(fires.length)} at once`] : []),
    ...(caughtUp.total > 0 ? [`catches up ${many(caughtUp.total)}`] : []),
    ...(skipped.total > 0 ? [`skips ${many(skipped.total)}, which will never fire by schedule`] : []),
    ...(underWay > 0 ? [`is still catching up ${many(underWay)}`] : []),
  ];
  return parts.length > 0 ? parts : ['fires nothing at once'];
}

const maxListed = 6;

function Listed({ trigger: { fires, caught_up: caughtUp, next } }: { readonly trigger: Trigger }) {
  const atOnce = [...fires, ...caughtUp.first];
  const [first] = next;
  return (
    <p className="preview-list muted">
      {atOnce.slice(0, maxListed).map((at) => (
        <Instant key={at} at={at} />
      ))}
      {atOnce.length > maxListed ? <span>… up to </span> : null}
      {atOnce.length > maxListed ? <Instant at={caughtUp.last ?? atOnce.at(-1) ?? ''} /> : null}
      {first === undefined ? (
        <span>No firing after that.</span>
      ) : (
        <span>
          Next <Instant at={first.instant} />, <Due at={first.due} />
        </span>
      )}
    </p>
  );
}
