/** Creates a new flow: an example to start from, and the same editor as for existing flows. */
import { Link, useLocation } from 'wouter';
import { DocumentEditor } from '../document/document-editor.tsx';
import { useDraft } from '../document/draft.ts';
import { Empty } from '../kit/empty.tsx';
import { useTitle } from '../kit/title.ts';
import { useMayOperate } from '../session/session.ts';
import { exampleFlow } from './new-flow.ts';
import { useFlowCheck, useFlowSchema, useSaveFlow } from './use-flow-check.ts';
import { flowHref } from './use-flows.ts';

export default function NewFlowPage() {
  useTitle('New flow');
  if (useMayOperate()) return <NewFlow />;
  return <Empty title="Your role may view flows, but not create them" />;
}

function NewFlow() {
  const [draft, setDraft] = useDraft('new flow');
  const [, go] = useLocation();
  const text = draft?.text ?? exampleFlow;
  const change = (next: string) => setDraft(next === exampleFlow ? undefined : { text: next, version: 0 });
  const schema = useFlowSchema();
  const check = useFlowCheck({ text, isOn: true, on: ['new'] });
  const save = useSaveFlow(({ name }) => {
    setDraft(undefined);
    go(flowHref(name));
  });
  const { answer } = check;
  const isNew = answer?.version === 1 && answer.changed;
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/flows">Flows</Link>
      </nav>
      <header className="page-head">
        <h1>New flow</h1>
      </header>
      <DocumentEditor
        label="Flow document"
        text={text}
        change={change}
        check={check}
        schema={schema}
        isUnchanged={false}
        preview={null}
        saving={{
          word: 'Create flow',
          isPossible: check.isCurrent && check.faults.length === 0 && isNew,
          isPending: save.isPending,
          error: save.error,
          save: () => save.mutate(text),
        }}
        notes={
          answer === undefined || isNew ? null : (
            <p className="note warned">
              There is <Link href={flowHref(answer.name, '/definition')}>a flow of that name</Link>. Choose another
              name, or edit that flow.
            </p>
          )
        }
      >
        {draft === undefined ? null : (
          <button type="button" className="button" onClick={() => setDraft(undefined)}>
            Start over
          </button>
        )}
      </DocumentEditor>
    </>
  );
}
