/** The form of a patch: fields to set, a step to replace, and below it what would happen, from a dry run. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { tenant } from '../../client.ts';
import { Answer } from '../../kit/answer.tsx';
import { Field, SelectField } from '../../kit/field.tsx';
import { JsonField } from '../../kit/json/json-field.tsx';
import { parseObject } from '../../kit/json/json-text.ts';
import { useSettled } from '../../kit/settled.ts';
import { type Execution, useDocument } from '../use-executions.ts';
import { OperationForm } from './operation-form.tsx';
import { type Patch, type PatchDraft, readPatch, type ReadPatch, replaceable, sourceOf } from './patch-draft.ts';
import { PatchPreview } from './patch-preview.tsx';

interface Props {
  readonly execution: Execution;
  /** The place of the step to replace; may be empty. */
  readonly path: string;
  readonly close: () => void;
}

const settleMs = 300;

export default function PatchForm(props: Props) {
  const { id, rev } = props.execution;
  // the document of the moment when the dialog was opened: a commit must not change what one types
  const [opened] = useState(rev);
  return (
    <Answer of={useDocument(id, opened)} what="Reading the document">
      {(document) => <Fields {...props} document={document} />}
    </Answer>
  );
}

function usePreview(execution: Execution, read: ReadPatch, force: boolean) {
  const patch = read.ok && !read.isEmpty ? read.patch : undefined;
  const settled = useSettled(patch === undefined ? '' : JSON.stringify({ ...patch, force }), settleMs);
  const query = useQuery({
    queryKey: ['patch preview', execution.id, execution.rev, settled],
    queryFn: ({ signal }) => {
      const body = { ...(JSON.parse(settled) as Patch & { force: boolean }), dry_run: true };
      return tenant('PATCH /api/executions/{id}', { params: { id: execution.id }, body, signal });
    },
    enabled: settled !== '',
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  return { ...query, isAsked: settled !== '' };
}

function Fields({ execution, path, document, close }: Props & { readonly document: unknown }) {
  const [draft, setDraft] = useState<PatchDraft>(() => ({ fields: '', path, steps: sourceOf(document, path) }));
  const [force, setForce] = useState(false);
  const source = useMemo(() => sourceOf(document, draft.path), [document, draft.path]);
  const read = readPatch(draft, source);
  const preview = usePreview(execution, read, force);
  const steps = useMemo(() => [{ value: '', label: 'none' }, ...replaceable(execution.tree)], [execution.tree]);
  const isPossible = read.ok && !read.isEmpty && preview.data !== undefined && preview.error === null;
  const send = () => {
    const body = { ...(read.ok ? read.patch : {}), force };
    return tenant('PATCH /api/executions/{id}', { params: { id: execution.id }, body });
  };
  return (
    <OperationForm execution={execution.id} act="Patch" isPossible={isPossible} send={send} close={close}>
      <JsonField
        label="Fields to set, as JSON"
        hint="Optional: members of f"
        text={draft.fields}
        parsed={parseObject(draft.fields)}
        change={(fields) => setDraft({ ...draft, fields })}
        rows={3}
        placeholder='{"amount": 12}'
      />
      <SelectField
        label="Step to replace"
        value={draft.path}
        options={steps}
        change={(next) => setDraft({ ...draft, path: next, steps: sourceOf(document, next) })}
      />
      {draft.path === '' ? null : (
        <Field
          label="Steps that replace it, as YAML"
          hint="A visit that is under way begins again with them. Steps that have ended stay as they were."
          fault={read.ok ? undefined : read.stepsFault}
        >
          {(wiring) => (
            <textarea
              {...wiring}
              className="input code"
              rows={10}
              value={draft.steps}
              spellCheck={false}
              onChange={(event) => setDraft({ ...draft, steps: event.currentTarget.value })}
            />
          )}
        </Field>
      )}
      <label className="check">
        <input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} />
        Force: cancel tasks that are under way inside the step
      </label>
      <PatchPreview preview={preview} nodes={execution.nodes} isEmpty={read.ok && read.isEmpty} />
    </OperationForm>
  );
}
