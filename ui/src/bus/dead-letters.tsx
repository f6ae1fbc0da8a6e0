/**
 * Batches that were given up, of one subscriber or of all: read them, deliver them again, or delete them. The address names the one
 * that is open (`?letter=`).
 */
import { Link } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Dialog } from '../kit/dialog.tsx';
import { Empty } from '../kit/empty.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { useShown, useUrlState } from '../kit/url-state.ts';
import { keys } from '../queries.ts';
import { Age } from '../time/times.tsx';
import './bus.css';
import { BusMessage } from './bus-message.tsx';
import { AnswerOf } from './deliveries-view.tsx';
import { type DeadLetter, useDeadLetter, useDeadLetters } from './use-bus.ts';

const firstShown = 50;
const mostShown = 1_000;

export function DeadLetters({ subscriber }: { readonly subscriber?: string }) {
  const [limit, showMore] = useShown(firstShown, mostShown);
  const [open, setOpen] = useUrlState('letter');
  return (
    <section className="bus-part" aria-label="Dead letters">
      {subscriber === undefined ? null : <AllActions subscriber={subscriber} />}
      <Answer of={useDeadLetters(subscriber, limit)} what="Reading dead letters">
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="No dead letters">
              <p>A batch becomes a dead letter when it was refused, or could not be delivered for too long.</p>
            </Empty>
          ) : (
            <>
              <LettersTable letters={items} isOfAll={subscriber === undefined} open={setOpen} />
              {next === null || limit >= mostShown ? null : (
                <button type="button" className="button more" onClick={showMore}>
                  More
                </button>
              )}
            </>
          )
        }
      </Answer>
      {open === '' ? null : <LetterDialog id={open} close={() => setOpen('')} />}
    </section>
  );
}

function AllActions({ subscriber }: { readonly subscriber: string }) {
  return (
    <div className="bar">
      <ActionDialog label="Deliver all again" title="Deliver all dead letters again">
        {(close) => (
          <Act
            close={close}
            what="Each is deleted once the receiver accepts it. Other deliveries continue meanwhile."
            act="Deliver again"
            change={() => tenant('POST /bus/dead_letters/replay', { query: { subscriber } })}
          />
        )}
      </ActionDialog>
      <ActionDialog label="Delete all" title="Delete all dead letters" kind="danger">
        {(close) => (
          <Act
            close={close}
            what="Their events are then delivered only by a replay."
            act="Delete"
            kind="danger"
            change={() => tenant('DELETE /bus/dead_letters', { query: { subscriber } })}
          />
        )}
      </ActionDialog>
    </div>
  );
}

interface ActProps {
  readonly close: () => void;
  readonly what: string;
  readonly act: string;
  readonly kind?: 'danger';
  readonly change: () => Promise<unknown>;
}

function Act({ close, what, act, kind, change }: ActProps) {
  const doing = useChange({ outdates: keys.bus, change, onDone: close });
  return (
    <ActionForm submit={() => doing.mutate()}>
      <p className="preview">{what}</p>
      <ActionFoot close={close} act={act} disabled={doing.isPending} {...(kind === undefined ? {} : { kind })}>
        <InlineFailure error={doing.error} />
      </ActionFoot>
    </ActionForm>
  );
}

interface TableProps {
  readonly letters: readonly DeadLetter[];
  readonly isOfAll: boolean;
  readonly open: (id: string) => void;
}

function LettersTable({ letters, isOfAll, open }: TableProps) {
  return (
    <table className="table bus-table">
      <thead>
        <tr>
          <th scope="col">Batch</th>
          {isOfAll ? <th scope="col">Subscriber</th> : null}
          <th scope="col">Last answer</th>
          <th scope="col" className="number wide">
            Events
          </th>
          <th scope="col" className="number wide">
            Attempts
          </th>
          <th scope="col" className="wide">
            Given up
          </th>
          <th scope="col">
            <span className="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {letters.map((letter) => (
          <tr key={letter.id}>
            <th scope="row">
              <button
                type="button"
                className="button bare bus-open"
                aria-haspopup="dialog"
                onClick={() => open(letter.id)}
              >
                <code>{letter.batch}</code>
              </button>
            </th>
            {isOfAll ? (
              <td>
                <Link href={`/subscribers/${encodeURIComponent(letter.subscriber)}?view=dead-letters`}>
                  {letter.subscriber}
                </Link>
              </td>
            ) : null}
            <td>
              <AnswerOf delivery={letter} />
            </td>
            <td className="number wide">{letter.events.toLocaleString('en')}</td>
            <td className="number wide">{letter.attempts}</td>
            <td className="wide">
              <Age at={letter.at} />
            </td>
            <td className="actions">
              <LetterActions letter={letter} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function LetterActions({ letter: { id, batch, code } }: { readonly letter: DeadLetter }) {
  return (
    <>
      <ActionDialog label="Deliver again" title={`Deliver ${batch} again`} offered={code !== 'dropped'}>
        {(close) => (
          <Act
            close={close}
            what="It is deleted once the receiver accepts it."
            act="Deliver again"
            change={() => tenant('POST /bus/dead_letters/{id}/replay', { params: { id } })}
          />
        )}
      </ActionDialog>
      <ActionDialog label="Delete" title={`Delete ${batch}`} kind="danger">
        {(close) => (
          <Act
            close={close}
            what="Its events are then delivered only by a replay."
            act="Delete"
            kind="danger"
            change={() => tenant('DELETE /bus/dead_letters/{id}', { params: { id } })}
          />
        )}
      </ActionDialog>
    </>
  );
}

function LetterDialog({ id, close }: { readonly id: string; readonly close: () => void }) {
  const letter = useDeadLetter(id);
  return (
    <Dialog title={`Dead letter ${letter.data?.batch ?? ''}`} close={close} wide>
      <div className="action-form">
        <Answer of={letter} what="Reading the dead letter">
          {({ body, complete, events, code, status, attempts }) => (
            <>
              <p>
                Last answer: {status ?? code}, after {attempts} {attempts === 1 ? 'attempt' : 'attempts'}.
              </p>
              {body === null ? (
                <p className="muted">Retention dropped its events before they could be delivered.</p>
              ) : (
                <>
                  <BusMessage text={body.map((item) => JSON.stringify(item)).join('\n')} />
                  {!complete && <p className="muted">The other {events - body.length} events are not shown.</p>}
                </>
              )}
            </>
          )}
        </Answer>
      </div>
    </Dialog>
  );
}
