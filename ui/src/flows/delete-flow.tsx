/** Deletes a flow. Its executions go on. */
import { useLocation } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { tenant } from '../client.ts';
import { InlineFailure } from '../kit/failure.tsx';
import { keys } from '../queries.ts';
import type { FlowViewProps } from './use-flows.ts';

export function DeleteFlowAction({ flow }: FlowViewProps) {
  return (
    <ActionDialog label="Delete" title={`Delete ${flow.name}`} kind="danger">
      {(close) => <Deletion flow={flow} close={close} />}
    </ActionDialog>
  );
}

function Deletion({ flow: { name }, close }: FlowViewProps & { readonly close: () => void }) {
  const [, go] = useLocation();
  const remove = useChange({
    outdates: [...keys.flows, 'list'],
    change: () => tenant('DELETE /api/flows/{name}', { params: { name } }),
    onDone: () => {
      close();
      go('/flows');
    },
  });
  return (
    <ActionForm submit={() => remove.mutate()}>
      <p className="preview">
        It cannot be started any more. Executions that are under way go on with the version that they have, and stay in
        the list of executions.
      </p>
      <ActionFoot close={close} act="Delete flow" kind="danger" disabled={remove.isPending}>
        <InlineFailure error={remove.error} />
      </ActionFoot>
    </ActionForm>
  );
}
