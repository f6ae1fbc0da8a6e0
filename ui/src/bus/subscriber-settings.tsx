/** The settings of a subscriber: what it receives, how batches close, and when delivery gives up. */
import { useState } from 'react';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { tenant } from '../client.ts';
import { Field } from '../kit/field.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { formatBytes, formatSpan } from '../time/format.ts';
import { Age } from '../time/times.tsx';
import { changeOf, draftOf, type SubscriberDraft } from './subscriber-draft.ts';
import type { SubscriberDetail } from './use-bus.ts';

export function SettingsView({ subscriber }: { readonly subscriber: SubscriberDetail }) {
  return (
    <section className="bus-part" aria-label="Settings">
      <div className="bar">
        <ActionDialog label="Change" title={`Change ${subscriber.subscriber}`} kind="primary" wide>
          {(close) => <ChangeForm subscriber={subscriber} close={close} />}
        </ActionDialog>
      </div>
      <table className="table">
        <tbody>
          {rowsOf(subscriber).map(([term, value]) => (
            <tr key={term}>
              <th scope="row">{term}</th>
              <td>{value}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Created</th>
            <td>
              <Age at={subscriber.created_at} />
            </td>
          </tr>
        </tbody>
      </table>
      <h2>Filter</h2>
      {subscriber.filter === null ? (
        <p className="muted">None: it receives every event of its topics.</p>
      ) : (
        <pre className="bus-message">{JSON.stringify(subscriber.filter, null, 2)}</pre>
      )}
    </section>
  );
}

function rowsOf(subscriber: SubscriberDetail): readonly (readonly [string, string])[] {
  const { rate, max_attempts: attempts, max_age: age, request_timeout: timeout } = subscriber;
  return [
    ['A batch closes at', `${subscriber.max_events} events, or ${formatBytes(subscriber.max_bytes)}`],
    [
      'or after',
      subscriber.quiet ? `${formatSpan(subscriber.timeout)} without an event` : formatSpan(subscriber.timeout),
    ],
    ['Order', subscriber.ordering === 'key' ? `by key, on ${subscriber.strands} strands` : 'all events in order'],
    ['Deliveries per second', rate === null ? 'as many as it takes' : String(rate)],
    ['Gives up after', `${attempts === null ? 'any number of' : attempts} attempts, ${spanOrDefault(age)}`],
    ['Time for an answer', spanOrDefault(timeout)],
    ['Signing secrets', subscriber.secrets === 0 ? 'none: deliveries are not signed' : String(subscriber.secrets)],
  ];
}

function spanOrDefault(ms: number | null): string {
  return ms === null ? 'the default time' : formatSpan(ms);
}

const fields: readonly (readonly [keyof SubscriberDraft, string, string])[] = [
  ['topics', 'Topics', 'Separated by spaces'],
  ['callback', 'Callback', 'An https URL'],
  ['max', 'Events of a batch', '1 to 10,000'],
  ['timeout', 'Window in milliseconds', 'How long an event waits for others, at most 3,600,000'],
  ['rate', 'Deliveries per second', 'Empty: as many as it takes'],
  ['maxAttempts', 'Attempts', 'Empty: any number, until the time is over'],
];

function ChangeForm({ subscriber, close }: { readonly subscriber: SubscriberDetail; readonly close: () => void }) {
  const [draft, setDraft] = useState(() => draftOf(subscriber));
  const change = changeOf(draft, subscriber);
  const save = useChange({
    outdates: keys.bus,
    change: () =>
      tenant('PATCH /bus/subscribers/{id}', {
        params: { id: subscriber.id },
        body: 'body' in change ? change.body : {},
      }),
    onDone: close,
  });
  const set = (name: keyof SubscriberDraft, value: string): void => setDraft({ ...draft, [name]: value });
  return (
    <ActionForm submit={() => save.mutate()}>
      {fields.map(([name, label, hint]) =>
        name === 'callback' && subscriber.callback === null ? null : (
          <Field key={name} label={label} hint={hint} fault={'faults' in change ? change.faults[name] : undefined}>
            {(wiring) => (
              <input
                {...wiring}
                className="input"
                value={draft[name]}
                spellCheck={false}
                autoComplete="off"
                onChange={(event) => set(name, event.currentTarget.value)}
              />
            )}
          </Field>
        ),
      )}
      <Field
        label="Filter"
        hint='JSON, such as {"type": "update", "data.total": {"$gte": 100}}; empty: every event'
        fault={'faults' in change ? change.faults.filter : undefined}
      >
        {(wiring) => (
          <textarea
            {...wiring}
            className="input"
            rows={5}
            value={draft.filter}
            spellCheck={false}
            onChange={(event) => set('filter', event.currentTarget.value)}
          />
        )}
      </Field>
      <ActionFoot close={close} act="Save" disabled={save.isPending || 'faults' in change}>
        <InlineFailure error={save.error} />
      </ActionFoot>
    </ActionForm>
  );
}
