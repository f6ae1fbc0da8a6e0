/**
 * The document of a flow, read-only for viewers and editable for operators. Unsaved text is kept as a draft; `?restore=3` starts
 * a draft from an old version. Executions under way keep the version that they began with.
 */
import { useEffect, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { CodeEditor } from '../document/code-editor.tsx';
import { DocumentEditor } from '../document/document-editor.tsx';
import '../document/document.css';
import { yamlOf } from '../document/document-text.ts';
import { useDraft } from '../document/draft.ts';
import { useUrlState } from '../kit/url-state.ts';
import { useMayOperate } from '../session/session.ts';
import { FlowPreview } from './flow-preview.tsx';
import { useFlowCheck, useFlowSchema, useSaveFlow } from './use-flow-check.ts';
import { type Flow, flowHref, useFlowVersion, type FlowViewProps } from './use-flows.ts';

const nothing: readonly never[] = [];
const ignore = () => undefined;

export default function FlowDefinitionView({ flow }: FlowViewProps) {
  const text = useMemo(() => yamlOf(flow.document), [flow.document]);
  if (useMayOperate()) return <Editing key={flow.name} flow={flow} base={text} />;
  return (
    <CodeEditor
      label="Flow document, read only"
      text={text}
      isReadOnly
      faults={nothing}
      warnings={nothing}
      schema={undefined}
      change={ignore}
      save={ignore}
    />
  );
}

interface EditingProps extends FlowViewProps {
  /** The saved text. */
  readonly base: string;
}

/** The text being edited. It is a draft only while it differs from the saved text. */
function useText({ flow, base }: EditingProps) {
  const [draft, setDraft] = useDraft(`flow ${flow.name}`);
  const [restore, setRestore] = useUrlState('restore');
  const old = useFlowVersion(flow.name, restore === '' ? undefined : Number(restore)).data;
  const wanted = useMemo(() => (old === undefined ? undefined : yamlOf(old.document)), [old]);
  useEffect(() => {
    if (restore === '' || wanted === undefined) return;
    setDraft(wanted === base ? undefined : { text: wanted, version: flow.version });
    setRestore('');
  }, [restore, wanted, base, flow.version, setDraft, setRestore]);
  const change = (text: string) =>
    setDraft(text === base ? undefined : { text, version: draft?.version ?? flow.version });
  return { text: draft?.text ?? base, draft, change, drop: () => setDraft(undefined) };
}

function Editing({ flow, base }: EditingProps) {
  const { text, draft, change, drop } = useText({ flow, base });
  const [, go] = useLocation();
  const schema = useFlowSchema();
  const check = useFlowCheck({ text, isOn: true, on: [flow.name, flow.version] });
  const save = useSaveFlow(({ name }) => {
    drop();
    if (name !== flow.name) go(flowHref(name));
  });
  const { answer } = check;
  const isOther = answer !== undefined && answer.name !== flow.name;
  const isPossible = check.isCurrent && check.faults.length === 0 && answer?.changed === true;
  return (
    <DocumentEditor
      label="Flow document"
      text={text}
      change={change}
      check={check}
      schema={schema}
      isUnchanged={answer?.changed === false}
      preview={
        answer === undefined ? null : <FlowPreview answer={answer} before={base} after={text} isOther={isOther} />
      }
      saving={{
        word: isOther ? `Save as ${answer.name}` : 'Save',
        isPossible,
        isPending: save.isPending,
        error: save.error,
        save: () => save.mutate(text),
      }}
      notes={draft === undefined ? null : <OldBase flow={flow} base={draft.version} />}
    >
      {draft === undefined ? null : (
        <button type="button" className="button" onClick={drop}>
          Discard changes
        </button>
      )}
    </DocumentEditor>
  );
}

function OldBase({ flow, base }: { readonly flow: Flow; readonly base: number }) {
  if (base === flow.version) return null;
  return (
    <p className="note warned">
      This draft is based on version {base}, but the flow is now at version {flow.version}. Saving replaces{' '}
      <Link href={flowHref(flow.name, `/versions?from=${base}`)}>what changed since</Link>.
    </p>
  );
}
