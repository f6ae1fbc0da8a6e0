/** One trigger: its schedule in words, facts, and the next firings. */
import { Link } from 'wouter';
import type { TenantAnswer } from '../../client.ts';
import { Fact } from '../../kit/facts.tsx';
import { useUrlState } from '../../kit/url-state.ts';
import { formatSpan } from '../../time/format.ts';
import { Due, Instant } from '../../time/times.tsx';
import { cronWords, periodWords } from './schedule-words.ts';
import { TriggerWhy } from './trigger-why.tsx';

type Trigger = TenantAnswer<'GET /api/jobs/{id}/firings'>['items'][number];

interface Props {
  readonly job: string;
  readonly trigger: Trigger;
}

export function TriggerSection({ job, trigger }: Props) {
  const [asked, ask] = useUrlState('why');
  const isAsked = asked === trigger.trigger_id;
  return (
    <section className="trigger" aria-label={`Trigger ${trigger.trigger_name}`}>
      <header className="trigger-head">
        <h2>{trigger.trigger_name}</h2>
        <p>{scheduleOf(trigger)}</p>
        <Link href={`/jobs/${job}/grid`}>Its instants</Link>
        <button
          type="button"
          className="button"
          aria-expanded={isAsked}
          onClick={() => ask(isAsked ? '' : trigger.trigger_id)}
        >
          Why?
        </button>
      </header>
      {isAsked ? <TriggerWhy job={job} trigger={trigger.trigger_id} /> : null}
      <div className="trigger-body">
        <TriggerFacts job={job} trigger={trigger} />
        <NextFirings trigger={trigger} />
      </div>
    </section>
  );
}

function scheduleOf({ cron, period, timezone }: Trigger): string {
  const words = cron === null ? periodWords(period ?? 0) : cronWords(cron);
  const zone = timezone ?? 'UTC';
  return words === undefined ? `cron ${cron}, ${zone}` : `${words}, ${zone}`;
}

const policies: Readonly<Record<string, string>> = {
  none: 'What is missed is skipped',
  earliest: 'What is missed is caught up, the earliest first',
  latest: 'What is missed is caught up, the latest first',
  random: 'What is missed is caught up in random order',
  last: 'Of what is missed only the newest is caught up',
};

function TriggerFacts({ job, trigger }: Props) {
  const offset = trigger.trigger_offset ?? 0;
  const left = trigger.catching_up;
  return (
    <dl className="trigger-facts">
      {trigger.cron === null ? null : (
        <Fact term="Cron">
          <code>{trigger.cron}</code>
        </Fact>
      )}
      {offset === 0 ? null : (
        <Fact term="Offset">
          {formatSpan(Math.abs(offset) * 1_000)} {offset > 0 ? 'after' : 'before'} the instant
        </Fact>
      )}
      <Fact term="Catch-up">{policies[trigger.catchup] ?? trigger.catchup}</Fact>
      <Fact term="To be caught up">
        {left === 0 ? 'nothing' : left === 1 ? '1 instant' : `${left.toLocaleString('en')} instants`}
      </Fact>
      <Fact term="From">
        <Instant at={trigger.start_datetime} />
      </Fact>
      {trigger.end_datetime === null ? null : (
        <Fact term="Until">
          <Instant at={trigger.end_datetime} />
        </Fact>
      )}
      <Fact term="Dealt with from">
        <Fired job={job} at={trigger.earliest_trigger_datetime} />
      </Fact>
      <Fact term="Dealt with until">
        <Fired job={job} at={trigger.latest_trigger_datetime} />
      </Fact>
    </dl>
  );
}

function Fired({ job, at }: { readonly job: string; readonly at: string | null }) {
  if (at === null) return <span className="muted">never</span>;
  return (
    <Link href={`/jobs/${job}?instant=${encodeURIComponent(at)}`}>
      <Instant at={at} />
    </Link>
  );
}

/** `2026-01-31T07:00:00+01:00[Europe/Berlin]` as a clock there shows it. */
function clockOf(local: string): string {
  const [, day = local, time = ''] = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}(?::(?!00)\d{2})?)/.exec(local) ?? [];
  return `${day} ${time}`.trim();
}

function NextFirings({ trigger: { next, timezone } }: { readonly trigger: Trigger }) {
  if (next.length === 0) return <p className="note">It fires no more.</p>;
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Next instants</th>
          {timezone === null ? null : <th scope="col">In {timezone}</th>}
          <th scope="col">Fires</th>
        </tr>
      </thead>
      <tbody>
        {next.map(({ instant, due, local }) => (
          <tr key={instant}>
            <td>
              <Instant at={instant} />
            </td>
            {timezone === null ? null : <td>{clockOf(local)}</td>}
            <td>
              <Due at={due} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
