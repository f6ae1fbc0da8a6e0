/** The steps of an execution as a tree, and beside it what is known of the selected one (`?node=`: a live visit, or a position). */
import { useCallback } from 'react';
import { useUrlState } from '../kit/url-state.ts';
import { StepPanel } from './inspector/step-panel.tsx';
import { TreeView } from './tree/tree-view.tsx';
import type { TreeStep } from './tree/tree-model.ts';
import type { Node, ExecutionViewProps } from './use-executions.ts';

export function StepsView({ execution, latest }: ExecutionViewProps) {
  const [asked, ask] = useUrlState('node');
  const { tree, nodes } = execution;
  const node = nodes.find(({ id }) => id === asked);
  // a visit that has ended meanwhile leaves its step selected
  const step = findStep(tree, node?.at ?? asked.split('-')[0] ?? '');
  const selected = node?.id ?? selectedKey(step, nodes);
  const close = useCallback(() => ask(''), [ask]);
  return (
    <section aria-label="Steps">
      {execution.nodes_total > nodes.length ? (
        <p className="note">
          {execution.nodes_total.toLocaleString('en')} steps are under way, of which {nodes.length.toLocaleString('en')}{' '}
          are shown.
        </p>
      ) : null}
      <div className="with-panel execution-steps">
        <TreeView root={tree} nodes={nodes} selected={selected} select={(key) => ask(key ?? '')} />
        {step === undefined || asked === '' ? null : (
          <StepPanel
            // another step is another panel
            key={node?.id ?? step.at}
            execution={execution}
            isPast={execution.rev < latest.rev}
            step={step}
            node={node}
            close={close}
          />
        )}
      </div>
    </section>
  );
}

/** The row of a step that the address names: of its only visit if there is one. */
function selectedKey(step: TreeStep | undefined, nodes: readonly Node[]): string | undefined {
  if (step === undefined) return undefined;
  const visits = nodes.filter(({ at }) => at === step.at);
  return visits.length === 1 ? visits[0]?.id : step.at;
}

function findStep(step: TreeStep, at: string): TreeStep | undefined {
  if (step.at === at) return step;
  const inside = step.children.find((child) => at === child.at || at.startsWith(`${child.at}_`));
  return inside === undefined ? undefined : findStep(inside, at);
}
