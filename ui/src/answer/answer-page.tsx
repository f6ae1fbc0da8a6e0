/**
 * The page behind the link of a human task: its title, its form, and thanks. It needs no key and no session, and calls nothing but
 * its own address.
 */
import { useMutation, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { statusOf } from '../client.ts';
import { Failure } from '../kit/failure.tsx';
import { Loading } from '../kit/loading.tsx';
import { useOnce } from '../kit/once.ts';
import { useTitle } from '../kit/title.ts';
import { Wordmark } from '../shell/wordmark.tsx';
import { fieldsOf } from '../workitems/form/answer-draft.ts';
import { AnswerForm } from '../workitems/form/answer-form.tsx';
import { hasInput, InputView } from '../workitems/form/input-view.tsx';
import './answer.css';
import { fetchTask, type LinkedTask, sendAnswer } from './answer-calls.ts';

export default function AnswerPage({ token }: { readonly token: string }) {
  const task = useQuery({
    queryKey: ['answer', token],
    queryFn: ({ signal }) => fetchTask(token, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  useTitle(task.data?.title ?? 'Answer');
  if (task.data !== undefined) return <Task token={token} task={task.data} />;
  return (
    <Card>
      {task.error === null ? (
        <Loading what="Opening the task" />
      ) : (
        <Unanswerable error={task.error} retry={task.refetch} />
      )}
    </Card>
  );
}

function Card({ children }: { readonly children: ReactNode }) {
  return (
    <main className="answer">
      <div className="answer-card">
        {children}
        <footer className="answer-mark">
          <Wordmark />
        </footer>
      </div>
    </main>
  );
}

function Task({
  token,
  task: { title, flow, name, form, input },
}: {
  readonly token: string;
  readonly task: LinkedTask;
}) {
  const once = useOnce((answer: Readonly<Record<string, unknown>>) => sendAnswer(token, answer));
  const send = useMutation({ mutationFn: once });
  if (send.data !== undefined) return <Thanks title={title} outcome={send.data.outcome} />;
  if (statusOf(send.error) === 410 || statusOf(send.error) === 404)
    return (
      <Card>
        <Unanswerable error={send.error} />
      </Card>
    );
  return (
    <Card>
      <header>
        <h1>{title}</h1>
        <p className="muted">
          {name}, of the flow {flow}
        </p>
      </header>
      {hasInput(input) ? <InputView input={input} /> : null}
      <AnswerForm fields={fieldsOf(form)} isPending={send.isPending} error={send.error} send={send.mutate} />
    </Card>
  );
}

function Thanks({ title, outcome }: { readonly title: string; readonly outcome: string }) {
  useTitle('Thank you');
  return (
    <Card>
      <div role="status">
        <h1>Thank you</h1>
      </div>
      <p>
        {outcome === 'accepted'
          ? `Your answer to “${title}” is stored, and takes effect soon.`
          : `Your answer to “${title}” was received.`}{' '}
        You can close this page.
      </p>
    </Card>
  );
}

function Unanswerable({ error, retry }: { readonly error: Error | null; readonly retry?: () => unknown }) {
  if (statusOf(error) === 410)
    return (
      <>
        <h1>Nothing to answer any more</h1>
        <p>Somebody has answered it, or the flow has gone on without an answer.</p>
      </>
    );
  if (statusOf(error) === 404)
    return (
      <>
        <h1>This link is not valid</h1>
        <p>
          It may be cut off: open it again from the message that it came in, or ask whoever sent it for another one.
        </p>
      </>
    );
  return error === null ? null : <Failure error={error} {...(retry && { retry })} />;
}
