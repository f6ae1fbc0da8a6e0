/** Changes a live execution: its fields, and a step of its tree. The form is fetched when it is opened, because it reads YAML. */
import { lazy, Suspense } from 'react';
import { ActionDialog } from '../../actions/action-dialog.tsx';
import { Loading } from '../../kit/loading.tsx';
import type { Execution } from '../use-executions.ts';

const PatchForm = lazy(() => import('./patch-form.tsx'));

interface Props {
  readonly execution: Execution;
  readonly offered?: boolean;
  readonly label?: string;
  /** The place in the document of the step to replace. */
  readonly path?: string;
}

export function PatchAction({ execution, offered = true, label = 'Patch', path = '' }: Props) {
  return (
    <ActionDialog label={label} title="Patch the execution" wide offered={offered}>
      {(close) => (
        <Suspense fallback={<Loading what="Opening the form" />}>
          <PatchForm execution={execution} path={path} close={close} />
        </Suspense>
      )}
    </ActionDialog>
  );
}
