/** One attempt: the request as it was sent, with its events, and the beginning of the answer. Its address names batch and time. */
import { useQuery } from '@tanstack/react-query';
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Dialog } from '../kit/dialog.tsx';
import { keys } from '../queries.ts';
import { formatInstant, formatSpan } from '../time/format.ts';
import { parseBatchId } from './batch-id.ts';
import { BusMessage } from './bus-message.tsx';
import { type Delivery, type SubscriberDetail, useAttempts } from './use-bus.ts';

/** Events that the dialog shows of a batch. */
const maxShown = 100;

/** A batch is sent several times under one id, so the time tells its attempts apart. */
export function linkOf({ batch, at }: Pick<Delivery, 'batch' | 'at'>): string {
  return `${batch}@${at}`;
}

interface Props {
  /** As `linkOf` writes it. */
  readonly link: string;
  readonly subscriber: SubscriberDetail;
  readonly close: () => void;
}

export function DeliveryDialog({ link, subscriber, close }: Props) {
  const [batch = '', at] = link.split('@');
  const attempts = useAttempts(subscriber.id, batch);
  return (
    <Dialog title={`Delivery ${batch}`} close={close} wide>
      <div className="action-form">
        <Answer of={attempts} what="Reading the delivery">
          {(items) => {
            const delivery = items.find((item) => item.at === at) ?? items[0];
            if (delivery === undefined) return <p className="muted">Retention has deleted this delivery.</p>;
            return <Attempt delivery={delivery} subscriber={subscriber} />;
          }}
        </Answer>
      </div>
    </Dialog>
  );
}

function Attempt({ delivery, subscriber }: { readonly delivery: Delivery; readonly subscriber: SubscriberDetail }) {
  return (
    <div className="bus-attempt">
      <h3>Answer</h3>
      <BusMessage text={answerOf(delivery)} />
      <h3>Request</h3>
      <BusMessage text={requestOf(delivery, subscriber)} />
      <Events delivery={delivery} subscriber={subscriber} />
    </div>
  );
}

function requestOf({ batch, attempt, at }: Delivery, { callback, secrets }: SubscriberDetail): string {
  const lines = [
    callback === null ? 'GET /bus/subscriber/batch' : `POST ${callback}`,
    'content-type: application/json',
    `webhook-id: ${batch}`,
    `webhook-timestamp: ${Math.floor(Date.parse(at) / 1_000)}`,
    `millrace-attempt: ${attempt}`,
  ];
  return [...lines, ...(secrets > 0 ? ['webhook-signature: v1,…'] : [])].join('\n');
}

function answerOf({ status, code, excerpt, ms, at }: Delivery): string {
  const first = `${status ?? code ?? 'no answer'} after ${formatSpan(ms)}, ${formatInstant(at)}`;
  return excerpt === null || excerpt === '' ? first : `${first}\n\n${excerpt}`;
}

/**
 * The events of the batch, as far as retention has kept them. The log does not know which of them a filter, a target or a strand
 * left out; a note says so if there are more than were sent.
 */
function Events({
  delivery,
  subscriber: { topics },
}: {
  readonly delivery: Delivery;
  readonly subscriber: SubscriberDetail;
}) {
  const { batch } = delivery;
  const range = parseBatchId(batch);
  const events = useQuery({
    queryKey: [...keys.bus, 'batch', batch],
    queryFn: async ({ signal }) => {
      if (range === undefined || topics.length === 0) return [];
      const query = { topics: topics.join(','), after: String(range.first - 1), limit: maxShown };
      const { items } = await tenant('GET /bus/events', { query, signal });
      return items.filter(({ id }) => Number(id) <= range.last);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Answer of={events} what="Reading the events">
      {(items) =>
        items.length === 0 ? (
          <p className="muted">Its events are no longer kept, or it was a test.</p>
        ) : (
          <>
            <BusMessage text={items.map((item) => JSON.stringify(item)).join('\n')} />
            <p className="muted">{noteOf(items.length, delivery.events)}</p>
          </>
        )
      }
    </Answer>
  );
}

function noteOf(shown: number, sent: number): string {
  const events = `${sent.toLocaleString('en')} ${sent === 1 ? 'event was' : 'events were'} sent`;
  if (shown === maxShown && sent >= shown) return `${events}; the first ${maxShown} of the range are shown.`;
  if (shown > sent)
    return `${events}. Shown are all events of its topics in this range, also those that its filter left out.`;
  return `${events}.`;
}
