/** The slots: how many there are, who holds one and what for, and who waits in which order. */
import { Link } from 'wouter';
import { ActionDialog } from '../actions/action-dialog.tsx';
import { Answer } from '../kit/answer.tsx';
import { Fact, Facts } from '../kit/facts.tsx';
import { Progress } from '../kit/progress.tsx';
import { useTitle } from '../kit/title.ts';
import { RootOnly } from '../session/root-only.tsx';
import { Age } from '../time/times.tsx';
import { ProcessName } from '../tenants/process-name.tsx';
import { SlotLimit } from './slot-limit.tsx';
import { partsOf, standInLine } from './slots.ts';
import { TenantsHead } from '../tenants/tenants-head.tsx';
import '../tenants/tenants.css';
import { type Slot, type Slots, useSlots } from '../tenants/use-tenants.ts';

export default function SlotsPage() {
  return (
    <RootOnly>
      <SlotsBody />
    </RootOnly>
  );
}

function SlotsBody() {
  useTitle('Slots');
  const slots = useSlots();
  return (
    <>
      <TenantsHead title="Slots">
        {slots.data === undefined ? null : (
          <div className="page-actions">
            <ActionDialog label="Change limit" title="How many slots">
              {(close) => <SlotLimit slots={slots.data} close={close} />}
            </ActionDialog>
          </div>
        )}
      </TenantsHead>
      <p className="slots-about">
        A slot is permission to run one thing in the background: the launcher itself, or the scheduler of a tenant with
        its housekeeping. A tenant that finds none free stands in line.
      </p>
      <Answer of={slots} what="Reading slots">
        {(data) => <Taken slots={data} />}
      </Answer>
    </>
  );
}

function Taken({ slots }: { readonly slots: Slots }) {
  const { holders, line } = standInLine(slots.items);
  const parts = partsOf(holders);
  return (
    <>
      <Progress label={`${slots.taken} of ${slots.limit}`} total={slots.limit} parts={parts} />
      <Facts>
        {parts.map(({ name, count, state }) => (
          <Fact key={name} term={name}>
            <span className="slot-kind" data-state={state} aria-hidden="true" />
            {count}
          </Fact>
        ))}
        <Fact term="free">{Math.max(0, slots.limit - slots.taken)}</Fact>
        <Fact term="in line">{line.length}</Fact>
      </Facts>
      {line.length === 0 ? null : (
        <section className="tenant-part" aria-labelledby="line">
          <h2 id="line">In line</h2>
          <SlotTable slots={line} isLine />
        </section>
      )}
      <section className="tenant-part" aria-labelledby="holders">
        <h2 id="holders">Held</h2>
        {holders.length === 0 ? <p className="muted">None is held.</p> : <SlotTable slots={holders} />}
      </section>
    </>
  );
}

function SlotTable({ slots, isLine = false }: { readonly slots: readonly Slot[]; readonly isLine?: boolean }) {
  return (
    <table className="table slots-table">
      <thead>
        <tr>
          {isLine ? <th scope="col">Position</th> : null}
          <th scope="col">Kind</th>
          <th scope="col">Tenant</th>
          <th scope="col">What for</th>
          <th scope="col" className="wide">
            Process
          </th>
          <th scope="col" className="wide">
            Since
          </th>
        </tr>
      </thead>
      <tbody>
        {slots.map((slot) => (
          <tr key={`${slot.kind} ${slot.tenant}`}>
            {isLine ? <td>{slot.position}</td> : null}
            <td>{slot.kind}</td>
            <th scope="row">
              {slot.tenant === null ? (
                <span className="muted">–</span>
              ) : (
                <Link href={`/tenants/${encodeURIComponent(slot.tenant)}`}>{slot.tenant}</Link>
              )}
            </th>
            <td className="muted">{slot.reason}</td>
            <td className="wide">
              <ProcessName of={slot.holder} />
            </td>
            <td className="wide muted">
              <Age at={slot.since} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
