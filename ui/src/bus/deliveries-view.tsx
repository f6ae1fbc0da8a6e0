/** Attempts to deliver, newest first. The address names the one whose request and answer are open (`?delivery=`). */
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Empty } from '../kit/empty.tsx';
import { useShown, useUrlState } from '../kit/url-state.ts';
import { formatSpan } from '../time/format.ts';
import { Age } from '../time/times.tsx';
import { DeliveryDialog, linkOf } from './delivery-dialog.tsx';
import { type Delivery, type SubscriberDetail, useDeliveries } from './use-bus.ts';

const choices = [
  { value: 'all', label: 'All' },
  { value: 'failed', label: 'Failed' },
] as const;

const firstShown = 50;
const mostShown = 1_000;

export function DeliveriesView({ subscriber }: { readonly subscriber: SubscriberDetail }) {
  const [show, choose] = useUrlState('show', 'all');
  const [limit, showMore] = useShown(firstShown, mostShown);
  const [open, setOpen] = useUrlState('delivery');
  const deliveries = useDeliveries(subscriber.id, { failed: show === 'failed', limit });
  return (
    <section className="bus-part" aria-label="Deliveries">
      <div className="bar">
        <Choice label="Which deliveries" options={choices} value={show} change={choose} />
      </div>
      <Answer of={deliveries} what="Reading deliveries">
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title={show === 'failed' ? 'No failed delivery' : 'Nothing was sent yet'}>
              {show === 'failed' ? null : <NothingSent subscriber={subscriber} />}
            </Empty>
          ) : (
            <>
              <DeliveriesTable deliveries={items} open={setOpen} />
              {next === null || limit >= mostShown ? null : (
                <button type="button" className="button more" onClick={showMore}>
                  More
                </button>
              )}
            </>
          )
        }
      </Answer>
      {open === '' ? null : <DeliveryDialog key={open} link={open} subscriber={subscriber} close={() => setOpen('')} />}
    </section>
  );
}

function NothingSent({ subscriber: { kind, events } }: { readonly subscriber: SubscriberDetail }) {
  if (kind === 'pull') return <p>Its consumer fetches batches: GET /bus/subscriber/batch.</p>;
  return (
    <p>{events.queued > 0 ? 'The sentence at the top says why.' : 'It has received no event of its topics yet.'}</p>
  );
}

interface TableProps {
  readonly deliveries: readonly Delivery[];
  readonly open: (link: string) => void;
}

function DeliveriesTable({ deliveries, open }: TableProps) {
  return (
    <table className="table bus-table">
      <thead>
        <tr>
          <th scope="col">Batch</th>
          <th scope="col">Answer</th>
          <th scope="col" className="number wide">
            Events
          </th>
          <th scope="col" className="number wide">
            Attempt
          </th>
          <th scope="col" className="number wide">
            Took
          </th>
          <th scope="col">When</th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <tr key={`${delivery.batch} ${delivery.attempt} ${delivery.at}`}>
            <th scope="row">
              <button
                type="button"
                className="button bare bus-open"
                aria-haspopup="dialog"
                onClick={() => open(linkOf(delivery))}
              >
                <code>{delivery.batch}</code>
              </button>
            </th>
            <td>
              <AnswerOf delivery={delivery} />
            </td>
            <td className="number wide">{delivery.events.toLocaleString('en')}</td>
            <td className="number wide">{delivery.attempt}</td>
            <td className="number wide">{formatSpan(delivery.ms)}</td>
            <td>
              <Age at={delivery.at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Codes of batches that a consumer pulls, which have no status: it got one, or acknowledged it. */
const pulled: ReadonlySet<string> = new Set(['handed_out', 'acked']);

export function AnswerOf({ delivery: { status, code } }: { readonly delivery: Pick<Delivery, 'status' | 'code'> }) {
  const isTaken = status === null ? code !== null && pulled.has(code) : status >= 200 && status < 300;
  return (
    <span className="bus-state" data-tone={isTaken ? 'well' : 'bad'}>
      {status ?? code ?? 'no answer'}
    </span>
  );
}
