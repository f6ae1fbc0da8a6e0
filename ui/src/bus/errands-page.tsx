/** The background work of the bus: how much there is in each state, what it is about, and a second chance for it. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { type TenantAnswer, tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Empty } from '../kit/empty.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { useTitle } from '../kit/title.ts';
import { useShown } from '../kit/url-state.ts';
import { keys } from '../queries.ts';
import { Age, Due } from '../time/times.tsx';
import './bus.css';
import { BusHead } from './bus-head.tsx';
import { ReadOnlyNote } from './read-only-note.tsx';

const firstShown = 50;
const mostShown = 1_000;
const pollMs = 2_000;

type Errands = TenantAnswer<'GET /api/errands'>;
type Errand = Errands['items'][number];

function useErrands(limit: number) {
  return useQuery({
    queryKey: [...keys.bus, 'errands', limit],
    queryFn: ({ signal }) => tenant('GET /api/errands', { query: { limit }, signal }),
    refetchInterval: pollMs,
    placeholderData: keepPreviousData,
  });
}

export default function ErrandsPage() {
  useTitle('Errands');
  const [limit, showMore] = useShown(firstShown, mostShown);
  return (
    <>
      <BusHead />
      <section className="bus-part" aria-label="Errands">
        <ReadOnlyNote actions="retry errands at once" />
        <Answer of={useErrands(limit)} what="Reading errands">
          {({ items, next, counts }) => (
            <>
              <Counts counts={counts} />
              {items.length === 0 ? (
                <Empty title="No errands">
                  <p>Couriers have nothing to do: all events are delivered.</p>
                </Empty>
              ) : (
                <ErrandsTable errands={items} />
              )}
              {next === null || limit >= mostShown ? null : (
                <button type="button" className="button more" onClick={showMore}>
                  More
                </button>
              )}
            </>
          )}
        </Answer>
      </section>
    </>
  );
}

function Counts({ counts }: { readonly counts: Errands['counts'] }) {
  return (
    <p className="muted">
      {Object.entries(counts)
        .map(([queue, { scheduled, ready, pending, poisoned }]) => {
          const parts = `${scheduled} scheduled, ${ready} ready, ${pending} pending, ${poisoned} poisoned`;
          return `${queue}: ${parts}`;
        })
        .join(' · ')}
    </p>
  );
}

function ErrandsTable({ errands }: { readonly errands: readonly Errand[] }) {
  return (
    <table className="table bus-table">
      <thead>
        <tr>
          <th scope="col">Work</th>
          <th scope="col">Subscriber</th>
          <th scope="col">State</th>
          <th scope="col">Due or taken</th>
          <th scope="col" className="number wide">
            Attempts
          </th>
          <th scope="col" className="number wide">
            Losses
          </th>
          <th scope="col" className="wide">
            Reason
          </th>
          <th scope="col">
            <span className="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {errands.map((errand) => (
          <ErrandRow key={`${errand.queue} ${errand.key}`} errand={errand} />
        ))}
      </tbody>
    </table>
  );
}

function ErrandRow({ errand }: { readonly errand: Errand }) {
  const { key, work, subscriber, state, attempts, losses, reason } = errand;
  const at = errand.run_at ?? errand.taken_at;
  return (
    <tr>
      <th scope="row" title={key}>
        {work ?? <code>{key}</code>}
      </th>
      <td>
        {subscriber === null ? '–' : <Link href={`/subscribers/${encodeURIComponent(subscriber)}`}>{subscriber}</Link>}
      </td>
      <td>{state}</td>
      <td>{errand.run_at !== null ? <Due at={errand.run_at} /> : at === null ? '–' : <Age at={at} />}</td>
      <td className="number wide">{attempts}</td>
      <td className="number wide">{losses}</td>
      <td className="wide">{reason ?? '–'}</td>
      <td className="actions">
        <ActionDialog
          label="Retry"
          title={`Retry ${work ?? 'the errand'}${subscriber === null ? '' : ` for ${subscriber}`}`}
          offered={state === 'scheduled' || state === 'poisoned'}
        >
          {(close) => <Retry errand={errand} close={close} />}
        </ActionDialog>
      </td>
    </tr>
  );
}

function Retry({ errand: { queue, key, state }, close }: { readonly errand: Errand; readonly close: () => void }) {
  const change = () => tenant('POST /api/errands/retry', { body: { queue, keys: [key] } });
  const doing = useChange({ outdates: keys.bus, change, onDone: close });
  return (
    <ActionForm submit={() => doing.mutate()}>
      <p className="preview">
        {state === 'poisoned'
          ? 'It was set aside because couriers were lost while they worked on it. A courier will try it again.'
          : 'It becomes ready now, instead of waiting for its time.'}
      </p>
      <ActionFoot close={close} act="Retry" disabled={doing.isPending}>
        <InlineFailure error={doing.error} />
      </ActionFoot>
    </ActionForm>
  );
}
