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
import { BusMessage } from './bus-message.tsx';
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
            <th scope="row">Signing secrets</th>
            <td>
              <Secrets subscriber={subscriber} />
            </td>
          </tr>
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
        <BusMessage text={JSON.stringify(subscriber.filter, null, 2)} />
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
    ['Becomes a dead letter after', giveUpOf(attempts, age)],
    ['Time for an answer', timeout === null ? '20s (the default)' : formatSpan(timeout)],
  ];
}

function giveUpOf(attempts: number | null, age: number | null): string {
  const time = age === null ? 'the time in MILLRACE_BUS_GIVE_UP' : formatSpan(age);
  return attempts === null ? time : `${attempts.toLocaleString('en')} attempts, or ${time}`;
}

function Secrets({ subscriber: { id, secrets } }: { readonly subscriber: SubscriberDetail }) {
  const text = ['none: deliveries are not signed', 'one', 'two: deliveries carry a signature of each'][secrets];
  return (
    <>
      {text}{' '}
      <ActionDialog label="End the older secret" title="End the older secret" kind="danger" offered={secrets > 1}>
        {(close) => <EndSecret id={id} close={close} />}
      </ActionDialog>
    </>
  );
}

function EndSecret({ id, close }: { readonly id: string; readonly close: () => void }) {
  const end = useChange({
    outdates: keys.bus,
    change: () => tenant('DELETE /bus/subscribers/{id}/secret', { params: { id }, query: {} }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => end.mutate()}>
      <p className="preview">
        Do this when the receiver verifies with the new secret. Deliveries are then signed with that one only.
      </p>
      <ActionFoot close={close} act="End it" kind="danger" disabled={end.isPending}>
        <InlineFailure error={end.error} />
      </ActionFoot>
    </ActionForm>
  );
}

const fields: readonly (readonly [keyof SubscriberDraft, string, string])[] = [
  ['topics', 'Topics', 'Separated by spaces'],
  ['callback', 'Callback', 'An https URL'],
  ['max', 'Events of a batch', '1 to 10,000'],
  ['timeout', 'Window in milliseconds', 'How long an event waits for others, at most 3,600,000'],
  ['rate', 'Deliveries per second', 'Empty: as many as it takes'],
  [
    'strands',
    'Strands',
    '1: all events in order. More: as many batches at once, and only events with the same key in order',
  ],
  ['maxAttempts', 'Attempts before it is a dead letter', 'Empty: any number, until the time beside it is over'],
  ['maxAge', 'Milliseconds before it is a dead letter', 'Empty: as MILLRACE_BUS_GIVE_UP says, 3 days by default'],
  ['requestTimeout', 'Milliseconds for an answer', 'Empty: 20,000'],
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
      <div className="bus-fields">
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
      </div>
      <Field
        label="Filter"
        hint='JSON, such as {"type": "update", "data.total": {"$gte": 100}}; empty: every event'
        fault={'faults' in change ? change.faults.filter : undefined}
      >
        {(wiring) => (
          <textarea
            {...wiring}
            className="input"
            rows={8}
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
