/** Messages to the launcher: sender, cause and outcome. */
import { Age, Span } from '../time/times.tsx';
import { detailOf, type Message, outcomeWords } from './standing.ts';
import './tenants.css';

export function MessagesTable({ messages }: { readonly messages: readonly Message[] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Message</th>
          <th scope="col">For</th>
          <th scope="col" className="wide">
            By
          </th>
          <th scope="col">Sent</th>
          <th scope="col">Outcome</th>
          <th scope="col" className="wide number">
            Took
          </th>
        </tr>
      </thead>
      <tbody>
        {messages.map((message) => (
          <tr key={message.id}>
            <th scope="row">{message.kind}</th>
            <td>{message.cause}</td>
            <td className="wide muted">{message.sender}</td>
            <td className="muted">
              <Age at={message.sent_at} />
            </td>
            <td>
              <Outcome message={message} />
            </td>
            <td className="wide number">
              <Span from={message.sent_at} to={message.settled_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const well = new Set(['accepted', 'started', 'stopped', 'superseded']);

export function Outcome({ message }: { readonly message: Message }) {
  const { outcome, settled_at: settledAt } = message;
  const detail = detailOf(message);
  const isBad = settledAt !== null && outcome !== null && !well.has(outcome);
  return (
    <span className="message-outcome" data-bad={isBad ? '' : undefined}>
      <span className="message-word">{outcomeWords(outcome)}</span>
      {settledAt === null ? <span className="tag">under way</span> : null}
      {detail === null ? null : <span className="muted">{detail}</span>}
    </span>
  );
}
