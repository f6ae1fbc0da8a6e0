/** One work item beside the inbox: its input, its form, and who has claimed it. */
import { useState } from 'react';
import { Link } from 'wouter';
import { useChange } from '../admin/use-change.ts';
import { statusOf, tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { SidePanel } from '../kit/side-panel.tsx';
import { keys } from '../queries.ts';
import { useMayOperate } from '../session/session.ts';
import { Age, Due } from '../time/times.tsx';
import { AnswerForm } from './form/answer-form.tsx';
import { hasInput, InputView } from './form/input-view.tsx';
import { useWorkitem, type Workitem } from './use-workitems.ts';

interface Props {
  readonly id: string;
  readonly close: () => void;
}

export function WorkitemPanel({ id, close }: Props) {
  const item = useWorkitem(id);
  // once it is answered it cannot be read any more, which is no fault
  const [answered, setAnswered] = useState<string>();
  const isGone = statusOf(item.error) === 410;
  return (
    <SidePanel title={item.data?.title ?? 'Work item'} close={close}>
      {answered !== undefined ? (
        <p role="status">{answered}</p>
      ) : isGone ? (
        <p role="status">It was answered already, or its step has ended.</p>
      ) : (
        <Answer of={item} what="Reading the work item">
          {(data) => <Open item={data} onAnswered={setAnswered} />}
        </Answer>
      )}
    </SidePanel>
  );
}

interface OpenProps {
  readonly item: Workitem;
  readonly onAnswered: (words: string) => void;
}

function Open({ item, onAnswered }: OpenProps) {
  const { execution, flow, node, assignee, team, due_at: dueAt, created_at: createdAt, input } = item;
  return (
    <>
      <p className="side-panel-facts muted">
        <span>{assignee ?? (team === null ? 'anybody' : `team ${team}`)}</span>
        <span>
          asked <Age at={createdAt} />
        </span>
        {dueAt === null ? null : (
          <span>
            due <Due at={dueAt} />
          </span>
        )}
      </p>
      <p>
        <Link href={`/executions/${execution}?node=${encodeURIComponent(node)}`}>The execution of {flow}</Link>
      </p>
      {hasInput(input) ? (
        <section>
          <h3>Input</h3>
          <InputView input={input} />
        </section>
      ) : null}
      {useMayOperate() ? <Claim item={item} /> : <ReadOnly />}
      {useMayOperate() ? <Form item={item} onAnswered={onAnswered} /> : null}
    </>
  );
}

function ReadOnly() {
  return (
    <p className="muted">
      Your key may only read. To answer, use a key that may operate, or the link that the flow has sent.
    </p>
  );
}

function Claim({ item: { id, claimed_by: claimedBy, claimed_until: until } }: Pick<OpenProps, 'item'>) {
  const change = useChange({
    outdates: keys.workitems,
    change: () =>
      claimedBy === null
        ? tenant('POST /api/workitems/{id}/claim', { params: { id }, body: {} })
        : tenant('POST /api/workitems/{id}/release', { params: { id } }),
  });
  return (
    <p className="workitem-claim">
      <span className="muted">
        {claimedBy === null ? 'Nobody has claimed it.' : `Claimed by ${claimedBy}`}
        {claimedBy === null || until === null ? null : (
          <>
            , ends <Due at={until} />
          </>
        )}
      </span>
      <button type="button" className="button" disabled={change.isPending} onClick={() => change.mutate()}>
        {claimedBy === null ? 'Claim' : 'Release'}
      </button>
      <InlineFailure error={change.error} />
    </p>
  );
}

type Given = Readonly<Record<string, unknown>>;

function Form({ item: { id, form }, onAnswered }: OpenProps) {
  const send = useChange({
    outdates: keys.workitems,
    change: (answer: Given) => tenant('POST /api/workitems/{id}/answer', { params: { id }, body: { ...answer } }),
    onDone: ({ outcome, detail = '' }) =>
      onAnswered(
        outcome === 'accepted' ? `It is stored, and takes effect later. ${detail}` : 'Answered. The flow goes on.',
      ),
  });
  return <AnswerForm fields={form} isPending={send.isPending} error={send.error} send={send.mutate} />;
}
