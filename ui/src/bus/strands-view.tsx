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

export function StrandsView({ subscriber: { readers } }: { readonly subscriber: SubscriberDetail }) {
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
            <th scope="col" className="number">
              Failed attempts
            </th>
            <th scope="col">Next</th>
            <th scope="col" className="number">
              Position
            </th>
            <th scope="col" className="number">
              Delivered
            </th>
          </tr>
        </thead>
        <tbody>
          {readers.map((reader) => (
            <Row key={reader.strand} reader={reader} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ reader }: { readonly reader: Strand }) {
  const nextAt = reader.next_attempt_at ?? reader.leased_until;
  return (
    <tr>
      <th scope="row">{reader.strand}</th>
      <td>{reader.errand === null ? 'nothing to deliver' : words[reader.errand]}</td>
      <td className="number">{reader.queued.toLocaleString('en')}</td>
      <td>{reader.oldest === null ? '–' : <Age at={reader.oldest} />}</td>
      <td className="number">{reader.attempts}</td>
      <td>{nextAt === null ? '–' : <Due at={nextAt} />}</td>
      <td className="number">{reader.position}</td>
      <td className="number">{reader.sent.toLocaleString('en')}</td>
    </tr>
  );
}
