/** The schedulers of this tenant in the last hour, with the next trigger of each. */
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { useTitle } from '../kit/title.ts';
import { Age } from '../time/times.tsx';
import './fleet.css';
import { Presence } from './presence.tsx';
import { type Scheduler, useSchedulers, useTriggerName } from './use-fleet.ts';

export default function SchedulersPage() {
  useTitle('Schedulers');
  const schedulers = useSchedulers();
  return (
    <>
      <header className="page-head">
        <h1>Schedulers</h1>
      </header>
      <Answer of={schedulers} what="Reading schedulers">
        {(all) => (all.length === 0 ? <NoSchedulers /> : <SchedulersTable schedulers={all} />)}
      </Answer>
    </>
  );
}

function SchedulersTable({ schedulers }: { readonly schedulers: readonly Scheduler[] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Scheduler</th>
          <th scope="col">State</th>
          <th scope="col" className="number">
            Queued triggers
          </th>
          <th scope="col">Next trigger</th>
          <th scope="col" className="wide">
            Version
          </th>
          <th scope="col" className="wide">
            Last seen
          </th>
        </tr>
      </thead>
      <tbody>
        {schedulers.map((scheduler) => (
          <tr key={scheduler.uuid}>
            <th scope="row">
              <code title={scheduler.uuid}>{scheduler.uuid.slice(-6)}</code>
            </th>
            <td>
              <Presence status={scheduler.status} lastSeenAt={scheduler.last_seen_datetime} />
            </td>
            <td className="number">{scheduler.queued_triggers.toLocaleString('en')}</td>
            <td>
              <NextTrigger scheduler={scheduler} />
            </td>
            <td className="wide muted">{scheduler.version}</td>
            <td className="wide muted">
              <Age at={scheduler.last_seen_datetime} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function NextTrigger({ scheduler }: { readonly scheduler: Scheduler }) {
  const { waiting_for_trigger_id: trigger, waiting_for_trigger_job_id: job } = scheduler;
  if (trigger === null) return <span className="muted">none</span>;
  if (job === null) return <code title={trigger}>{trigger.slice(-6)}</code>;
  return <NamedTrigger job={job} trigger={trigger} />;
}

function NamedTrigger({ job, trigger }: { readonly job: string; readonly trigger: string }) {
  const { data: name } = useTriggerName(job, trigger);
  return <Link href={`/jobs/${job}/triggers`}>{name ?? trigger.slice(-6)}</Link>;
}

function NoSchedulers() {
  return (
    <Empty title="No scheduler in the last hour">
      <p>
        No trigger fires without one. The scheduler runs within the server; start it with <Command>millrace up</Command>
        .
      </p>
    </Empty>
  );
}
