/** The actions on a subscriber: pause, resume, send a test, create a signing secret, delete. */
import { useState } from 'react';
import { useLocation } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { tenant } from '../client.ts';
import { CopyButton } from '../kit/copy-button.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import { useMayOperate } from '../session/session.ts';
import { formatSpan } from '../time/format.ts';
import { faultOfPoint, PointField } from './point-field.tsx';
import { ReadOnlyNote } from './read-only-note.tsx';
import type { SubscriberDetail } from './use-bus.ts';

interface Props {
  readonly subscriber: SubscriberDetail;
}

interface FormProps extends Props {
  readonly close: () => void;
}

export function SubscriberActions({ subscriber }: Props) {
  const isActive = subscriber.state === 'active';
  if (!useMayOperate()) return <ReadOnlyNote actions="pause, test and change it" />;
  return (
    <div className="page-actions">
      <ActionDialog label="Test" title="Send a test event" offered={subscriber.callback !== null}>
        {(close) => <Test subscriber={subscriber} close={close} />}
      </ActionDialog>
      <ActionDialog label="Pause" title={`Pause ${subscriber.subscriber}`} offered={isActive}>
        {(close) => <Pause subscriber={subscriber} close={close} />}
      </ActionDialog>
      <ActionDialog
        label={isActive ? 'Move position' : 'Resume'}
        title={isActive ? 'Move the position' : `Resume ${subscriber.subscriber}`}
      >
        {(close) => <Resume subscriber={subscriber} close={close} />}
      </ActionDialog>
      <ActionDialog label="New secret" title="New signing secret" offered={subscriber.callback !== null}>
        {(close) => <Secret subscriber={subscriber} close={close} />}
      </ActionDialog>
      <ActionDialog label="Delete" title={`Delete ${subscriber.subscriber}`} kind="danger">
        {(close) => <Deletion subscriber={subscriber} close={close} />}
      </ActionDialog>
    </div>
  );
}

function Pause({ subscriber: { id }, close }: FormProps) {
  const [reason, setReason] = useState('');
  const body = reason.trim() === '' ? {} : { reason: reason.trim() };
  const pause = useChange({
    outdates: keys.bus,
    change: () => tenant('POST /bus/subscribers/{id}/pause', { params: { id }, body }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => pause.mutate()}>
      <p className="preview">Events are kept and counted. A delivery that is under way ends first.</p>
      <PointField label="Reason" hint="For others who see it paused; may be empty" value={reason} change={setReason} />
      <ActionFoot close={close} act="Pause" disabled={pause.isPending}>
        <InlineFailure error={pause.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function Resume({ subscriber: { id, state, events }, close }: FormProps) {
  const [from, setFrom] = useState('');
  const point = from.trim();
  const resume = useChange({
    outdates: keys.bus,
    change: () =>
      tenant('POST /bus/subscribers/{id}/resume', { params: { id }, body: point === '' ? {} : { from: point } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => resume.mutate()}>
      <p className="preview">
        {point === ''
          ? `It continues where it stopped: ${events.queued.toLocaleString('en')} events wait.`
          : 'Its position moves: events before it are skipped, events after it are delivered, also those that were delivered before.'}
      </p>
      <PointField
        label="From"
        fault={faultOfPoint(from)}
        hint="Empty: where it stopped. Or now, the number of an event, or a time: 2026-01-31T00:00:00Z"
        value={from}
        change={setFrom}
      />
      <ActionFoot
        close={close}
        act={state === 'active' ? 'Move' : 'Resume'}
        disabled={resume.isPending || faultOfPoint(from) !== undefined || (state === 'active' && point === '')}
      >
        <InlineFailure error={resume.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function Test({ subscriber: { id, callback }, close }: FormProps) {
  const test = useChange({
    outdates: keys.bus,
    change: () => tenant('POST /bus/subscribers/{id}/test', { params: { id } }),
  });
  return (
    <ActionForm submit={() => test.mutate()}>
      <p className="preview">A batch with one event of the type noop is sent to {callback}.</p>
      {test.data === undefined ? null : <p role="status">{resultOf(test.data.delivery)}</p>}
      <ActionFoot close={close} act={test.data === undefined ? 'Send' : 'Send another'} disabled={test.isPending}>
        <InlineFailure error={test.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function resultOf(delivery: { status: number | null; code: string | null; ms: number } | null): string {
  if (delivery === null) return 'No courier has sent it yet. Look for it among the deliveries.';
  const answer = delivery.status === null ? `failed: ${delivery.code}` : `answered ${delivery.status}`;
  return `The receiver ${answer} after ${formatSpan(delivery.ms)}.`;
}

function Secret({ subscriber: { id, secrets }, close }: FormProps) {
  const make = useChange({
    outdates: keys.bus,
    change: () => tenant('POST /bus/subscribers/{id}/secret', { params: { id }, body: {} }),
  });
  if (make.data !== undefined) {
    return (
      <div className="action-form">
        <p role="status">Copy it now; it cannot be shown again. Deliveries are signed with it from now on.</p>
        <p className="new-secret">
          <code>{make.data.secret}</code>
          <CopyButton text={make.data.secret} />
        </p>
        <ActionFoot close={close} />
      </div>
    );
  }
  return (
    <ActionForm submit={() => make.mutate()}>
      <p className="preview">
        {secrets === 0
          ? 'Deliveries are not signed now. With a secret, the receiver can check who sent them (Standard Webhooks).'
          : 'Deliveries are signed with the new secret and the one before it, so that the receiver can change over.'}
      </p>
      <ActionFoot close={close} act="Create secret" disabled={make.isPending}>
        <InlineFailure error={make.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function Deletion({ subscriber: { id, events }, close }: FormProps) {
  const [, go] = useLocation();
  const remove = useChange({
    outdates: keys.bus,
    change: () => tenant('DELETE /bus/subscribers/{id}', { params: { id } }),
    onDone: () => {
      close();
      go('/subscribers');
    },
  });
  return (
    <ActionForm submit={() => remove.mutate()}>
      <p className="preview">
        Its position, dead letters and replays are deleted. {events.queued.toLocaleString('en')} events that wait are
        not delivered to it.
      </p>
      <ActionFoot close={close} act="Delete subscriber" kind="danger" disabled={remove.isPending}>
        <InlineFailure error={remove.error} />
      </ActionFoot>
    </ActionForm>
  );
}
