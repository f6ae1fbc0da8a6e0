/** The steps of a flow as a tree, as executions show them, and what its tasks need to run. */
import { TreeView } from '../executions/tree/tree-view.tsx';
import { useUrlState } from '../kit/url-state.ts';
import type { FlowViewProps } from './use-flows.ts';

const noNodes: readonly never[] = [];

export function FlowStepsView({ flow: { tree, functions, warnings } }: FlowViewProps) {
  const [selected, select] = useUrlState('step');
  return (
    <section aria-label="Steps" className="flow-steps">
      {warnings.length === 0 ? null : (
        <ul className="note warned">
          {warnings.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              <code>{path}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {functions.length === 0 ? null : (
        <p className="note">
          A conductor has to host {functions.length === 1 ? 'the function' : 'the functions'}{' '}
          {functions.map((name, i) => (
            <span key={name}>
              {i === 0 ? '' : ', '}
              <code>{name}</code>
            </span>
          ))}
          .
        </p>
      )}
      <TreeView
        root={tree}
        nodes={noNodes}
        selected={selected === '' ? undefined : selected}
        select={(key) => select(key ?? '')}
      />
    </section>
  );
}
