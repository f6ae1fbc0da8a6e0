/** How far each strand has come: its position, what is queued, and the batch in flight or waiting for a retry. */
import { Due, Age } from '../time/times.tsx';
import type { SubscriberDetail } from './use-bus.ts';

type Strand = SubscriberDetail['readers'][number];

const words: Readonly<Record<NonNullable<Strand['errand']>, string>> = {
  scheduled: 'waits',
  ready: 'ready',
  pending: 'in flight',
  poisoned: 'set aside after repeated losses',
};

/** A strand without an errand delivers nothing: there is nothing, the subscriber is stopped, or a consumer fetches its batches. */
function batchOf({ errand, queued, leased_until: lease }: Strand, { state, kind }: SubscriberDetail): string {
  if (errand !== null) return words[errand];
  if (lease !== null) return 'fetched by a consumer';
  if (queued === 0) return 'nothing to deliver';
  if (state !== 'active') return state;
  return kind === 'pull' ? 'to be fetched' : 'waits for a courier';
}

export function StrandsView({ subscriber }: { readonly subscriber: SubscriberDetail }) {
  return (
    <section className="bus-part" aria-label="Queue">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Strand</th>
            <th scope="col">Batch</th>
            <th scope="col" className="number">
              Waiting
            </th>
            <th scope="col">Oldest</th>
            <th scope="col" className="number wide">
              Failed attempts
            </th>
            <th scope="col">Next</th>
            <th scope="col" className="number wide">
              Position
            </th>
            <th scope="col" className="number wide">
              Delivered
            </th>
          </tr>
        </thead>
        <tbody>
          {subscriber.readers.map((reader) => (
            <Row key={reader.strand} reader={reader} batch={batchOf(reader, subscriber)} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ reader, batch }: { readonly reader: Strand; readonly batch: string }) {
  const nextAt = reader.next_attempt_at ?? reader.leased_until;
  return (
    <tr>
      <th scope="row">{reader.strand}</th>
      <td>{batch}</td>
      <td className="number">{reader.queued.toLocaleString('en')}</td>
      <td>{reader.oldest === null ? '–' : <Age at={reader.oldest} />}</td>
      <td className="number wide">{reader.attempts}</td>
      <td>{nextAt === null ? '–' : <Due at={nextAt} />}</td>
      <td className="number wide">{reader.position}</td>
      <td className="number wide">{reader.sent.toLocaleString('en')}</td>
    </tr>
  );
}
