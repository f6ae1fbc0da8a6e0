/** Operations on all executions of a filter: they are counted first, then done a page at a time, with progress and failures. */
import { useState } from 'react';
import { ActionDialog, ActionFoot, ActionForm } from '../../actions/action-dialog.tsx';
import { SelectField } from '../../kit/field.tsx';
import type { ExecutionFilter } from '../use-executions.ts';
import { BulkProgress } from './bulk-progress.tsx';
import { type Action, countWords, describeFilter, isSearchable } from './bulk-words.ts';
import { useBulk, useBulkCount } from './use-bulk.ts';

interface Props {
  readonly filter: ExecutionFilter;
}

export function BulkActions({ filter }: Props) {
  return (
    <ActionDialog label="Act on all of these" title="Act on many executions">
      {(close) => <BulkForm filter={filter} close={close} />}
    </ActionDialog>
  );
}

const actions = [
  { value: 'retry', label: 'Retry their incidents' },
  { value: 'skip', label: 'Skip their incidents' },
  { value: 'pause', label: 'Pause' },
  { value: 'resume', label: 'Resume' },
  { value: 'cancel', label: 'Cancel' },
  { value: 'kill', label: 'Kill' },
] as const satisfies readonly { value: Action; label: string }[];

const meanings: Readonly<Record<Action, string>> = {
  retry: 'Each step that has failed and waits for an operator begins again.',
  skip: 'Each step that has failed and waits for an operator ends with the result null.',
  pause: 'They begin no step until they are resumed.',
  resume: 'Paused ones go on.',
  cancel: 'Tasks under way are stopped, completed steps are undone, and on_cancel runs.',
  kill: 'They end at once. Nothing is undone.',
};

function BulkForm({ filter: asked, close }: Props & { readonly close: () => void }) {
  // of the moment when it was opened: what is counted is what is done
  const [filter] = useState(asked);
  const [action, setAction] = useState<Action>('retry');
  const count = useBulkCount(filter, action);
  const bulk = useBulk(filter, action);
  if (bulk.progress !== undefined) return <BulkProgress bulk={bulk} total={count.data?.matched} close={close} />;
  const isPossible = count.data !== undefined && count.data.matched > 0;
  return (
    <ActionForm submit={() => isPossible && bulk.start()}>
      <p className="preview">{describeFilter(filter)}</p>
      {isSearchable(filter) ? null : (
        <p className="note warned">No filter is set: this is every execution of the tenant.</p>
      )}
      <SelectField label="Action" value={action} options={actions} change={setAction} hint={meanings[action]} />
      <p role="status" className="note">
        {countWords(count)}
      </p>
      <ActionFoot
        close={close}
        act={actions.find(({ value }) => value === action)?.label ?? action}
        kind={action === 'cancel' || action === 'kill' ? 'danger' : 'primary'}
        disabled={!isPossible}
      />
    </ActionForm>
  );
}
