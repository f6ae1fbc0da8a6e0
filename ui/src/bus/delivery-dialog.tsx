/** One attempt: the request as it was sent, with its events, and the beginning of the answer. */
import { useQuery } from '@tanstack/react-query';
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Dialog } from '../kit/dialog.tsx';
import { keys } from '../queries.ts';
import { formatInstant, formatSpan } from '../time/format.ts';
import { parseBatchId } from './batch-id.ts';
import type { Delivery, SubscriberDetail } from './use-bus.ts';

/** Events that the dialog shows of a batch. */
const maxShown = 100;

interface Props {
  readonly delivery: Delivery;
  readonly subscriber: SubscriberDetail;
  readonly close: () => void;
}

export function DeliveryDialog({ delivery, subscriber, close }: Props) {
  return (
    <Dialog title={`Delivery ${delivery.batch}`} close={close} wide>
      <div className="action-form">
        <h3>Request</h3>
        <pre className="bus-message">{requestOf(delivery, subscriber)}</pre>
        <Events batch={delivery.batch} topics={subscriber.topics} />
        <h3>Answer</h3>
        <pre className="bus-message">{answerOf(delivery)}</pre>
      </div>
    </Dialog>
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

/** The events of the batch, as far as retention has kept them. */
function Events({ batch, topics }: { readonly batch: string; readonly topics: readonly string[] }) {
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
          <pre className="bus-message">{items.map((item) => JSON.stringify(item)).join('\n')}</pre>
        )
      }
    </Answer>
  );
}
