/** Replays of a subscriber: how far each has come, start one, cancel one. */
import { useState } from 'react';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Empty } from '../kit/empty.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { Progress } from '../kit/progress.tsx';
import { keys } from '../queries.ts';
import { Age } from '../time/times.tsx';
import { faultOfPoint, PointField } from './point-field.tsx';
import { type Replay, type SubscriberDetail, useReplays } from './use-bus.ts';

export function ReplaysView({ subscriber }: { readonly subscriber: SubscriberDetail }) {
  return (
    <section className="bus-part" aria-label="Replays">
      <div className="bar">
        <ActionDialog label="New replay" title="Deliver the past again" kind="primary">
          {(close) => <NewReplay subscriber={subscriber} close={close} />}
        </ActionDialog>
      </div>
      <Answer of={useReplays(subscriber.id)} what="Reading replays">
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No replays">
              <p>A replay delivers a range of the past again, beside the ordinary deliveries and with the same ids.</p>
            </Empty>
          ) : (
            <ReplaysTable replays={items} subscriber={subscriber.id} />
          )
        }
      </Answer>
    </section>
  );
}

function ReplaysTable({ replays, subscriber }: { readonly replays: readonly Replay[]; readonly subscriber: string }) {
  return (
    <table className="table bus-table bus-replays">
      <thead>
        <tr>
          <th scope="col">Range</th>
          <th scope="col">Progress</th>
          <th scope="col" className="number">
            Sent
          </th>
          <th scope="col">State</th>
          <th scope="col" className="wide">
            By
          </th>
          <th scope="col" className="wide">
            Started
          </th>
          <th scope="col">
            <span className="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {replays.map((replay) => (
          <Row key={replay.id} replay={replay} subscriber={subscriber} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ replay, subscriber }: { readonly replay: Replay; readonly subscriber: string }) {
  const [from, to, position] = [Number(replay.from), Number(replay.to), Number(replay.position)];
  return (
    <tr>
      <th scope="row">
        {(from + 1).toLocaleString('en')} to {to.toLocaleString('en')}
      </th>
      <td>
        <Progress
          label={percent(position - from, to - from)}
          total={to - from}
          parts={[{ name: 'passed', count: position - from }]}
        />
      </td>
      <td className="number">{replay.sent.toLocaleString('en')}</td>
      <td>{replay.state}</td>
      <td className="wide muted">{replay.by}</td>
      <td className="wide">
        <Age at={replay.at} />
      </td>
      <td className="actions">
        <ActionDialog label="Cancel" title="Cancel this replay" kind="danger" offered={replay.state === 'running'}>
          {(close) => <Cancellation replay={replay.id} subscriber={subscriber} close={close} />}
        </ActionDialog>
      </td>
    </tr>
  );
}

function percent(done: number, total: number): string {
  return `${total === 0 ? 100 : Math.min(100, Math.max(0, Math.floor((100 * done) / total)))} %`;
}

interface CancellationProps {
  readonly replay: string;
  readonly subscriber: string;
  readonly close: () => void;
}

function Cancellation({ replay, subscriber, close }: CancellationProps) {
  const cancel = useChange({
    outdates: keys.bus,
    change: () => tenant('DELETE /bus/subscribers/{id}/replays/{replay}', { params: { id: subscriber, replay } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => cancel.mutate()}>
      <p className="preview">Events that were sent stay sent.</p>
      <ActionFoot close={close} act="Cancel replay" kind="danger" disabled={cancel.isPending}>
        <InlineFailure error={cancel.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function NewReplay({ subscriber, close }: { readonly subscriber: SubscriberDetail; readonly close: () => void }) {
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const [onlyUndelivered, setOnlyUndelivered] = useState(false);
  const fault = faultOfPoint(from) ?? faultOfPoint(to);
  const start = useChange({
    outdates: keys.bus,
    change: () =>
      tenant('POST /bus/subscribers/{id}/replays', {
        params: { id: subscriber.id },
        body: {
          from: from.trim(),
          only_undelivered: onlyUndelivered,
          ...(to.trim() === '' ? {} : { to: to.trim() }),
        },
      }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => start.mutate()}>
      <PointField
        label="From"
        fault={faultOfPoint(from)}
        hint="The number of the first event, or a time: 2026-01-31T00:00:00Z"
        value={from}
        change={setFrom}
      />
      <PointField
        label="To"
        fault={faultOfPoint(to)}
        hint="The same, or empty for the newest event"
        value={to}
        change={setTo}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={onlyUndelivered}
          onChange={(event) => setOnlyUndelivered(event.currentTarget.checked)}
        />{' '}
        Only what was given up or dropped
      </label>
      <ActionFoot
        close={close}
        act="Start replay"
        disabled={start.isPending || from.trim() === '' || fault !== undefined}
      >
        <InlineFailure error={start.error} />
      </ActionFoot>
    </ActionForm>
  );
}
