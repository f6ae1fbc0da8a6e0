/** What is known of a step: its state and what it waits for, its error, work and timers, what may be done, and its definition. */
import { JsonView } from '../../kit/json/json-view.tsx';
import { SidePanel } from '../../kit/side-panel.tsx';
import { useMayOperate } from '../../session/session.ts';
import { Age, Due, Instant } from '../../time/times.tsx';
import { CancelNodeAction, RetryAction, SkipAction } from '../actions/node-actions.tsx';
import { PatchAction } from '../actions/patch.tsx';
import { StepStateWord } from '../status.tsx';
import { stateOfNode, type TreeStep } from '../tree/tree-model.ts';
import { type Execution, hasEnded, type Node } from '../use-executions.ts';
import { withoutTime } from '../waits-words.ts';
import { NodeHistory } from './node-history.tsx';
import { NodeWork } from './node-work.tsx';
import { Section } from './section.tsx';
import { StepSource } from './step-source.tsx';

interface Props {
  readonly execution: Execution;
  /** An earlier revision is shown: nothing can be done about it. */
  readonly isPast: boolean;
  readonly step: TreeStep;
  /** Undefined: the step is not under way. */
  readonly node: Node | undefined;
  readonly close: () => void;
}

export function StepPanel({ execution, isPast, step, node, close }: Props) {
  const title = step.title === '' ? (step.branch ?? step.verb) : step.title;
  const canChange = useMayOperate() && !isPast && !hasEnded(execution);
  return (
    <SidePanel title={title} close={close}>
      <p className="side-panel-facts">
        <StepStateWord state={node === undefined ? step.state : stateOfNode(node)} />
        <span className="muted">
          {step.verb}
          {step.tag === null ? '' : `, tag ${step.tag}`}
        </span>
        {node === undefined ? null : (
          <span className="muted">
            since <Age at={node.since} />
          </span>
        )}
      </p>
      {node === undefined ? null : <Standing node={node} />}
      {canChange ? <Actions execution={execution} step={step} node={node} /> : null}
      {node === undefined || node.input === null ? null : (
        <Section title="Input">
          <JsonView label="Input" value={node.input} />
        </Section>
      )}
      {node === undefined ? null : <NodeWork execution={execution.id} node={node} />}
      {node === undefined || node.timers.length === 0 ? null : <Timers timers={node.timers} />}
      {node === undefined || Object.keys(node.vars).length === 0 ? null : (
        <Section title="Variables (v)">
          <JsonView label="Variables" value={node.vars} />
        </Section>
      )}
      <Section title="Place">
        <p className="side-panel-facts">
          <code>{step.at === '0' ? 'the whole flow' : step.path}</code>
          {node === undefined ? null : <code className="muted">{node.id}</code>}
          {node == null || node.item === null ? null : <span className="tag">item {node.item.key}</span>}
          {node === undefined || node.role === 'main' ? null : <span className="tag">{node.role}</span>}
        </p>
      </Section>
      <StepSource execution={execution.id} rev={execution.rev} path={step.path} />
      <NodeHistory execution={execution} at={step.at} node={node?.id} />
    </SidePanel>
  );
}

function Standing({ node: { waits, error, attempt } }: { readonly node: Node }) {
  return (
    <>
      {error === null ? null : (
        <Section title="Error">
          <p className="node-error">
            <strong>{error.code}</strong> {error.message === error.code ? '' : error.message}
          </p>
        </Section>
      )}
      {waits === null || waits.kind === 'incident' ? null : (
        <Section title="Waits for">
          <p>
            {withoutTime(waits)}
            {waits.until === null ? null : (
              <span className="muted">
                , <Due at={waits.until} /> (<Instant at={waits.until} />)
              </span>
            )}
          </p>
        </Section>
      )}
      {attempt > 1 ? <p className="muted">Attempt {attempt}</p> : null}
    </>
  );
}

function Actions({ execution, step, node }: Pick<Props, 'execution' | 'step' | 'node'>) {
  const isBad = node?.phase === 'incident';
  const isAtWork = node?.phase === 'run' || node?.phase === 'backoff';
  return (
    <div className="side-panel-actions">
      {isBad || node?.phase === 'backoff' ? <RetryAction execution={execution.id} node={node.id} /> : null}
      {isBad || isAtWork ? <SkipAction execution={execution.id} node={node.id} /> : null}
      {isBad || isAtWork ? <CancelNodeAction execution={execution.id} node={node.id} /> : null}
      {step.branch === null && step.at !== '0' ? (
        <PatchAction execution={execution} path={step.path} label="Replace step" />
      ) : null}
    </div>
  );
}

function Timers({ timers }: { readonly timers: Node['timers'] }) {
  return (
    <Section title="Timers">
      <ul className="node-timers">
        {timers.map(({ name, due_at: dueAt }) => (
          <li key={name}>
            {name} <Due at={dueAt} />{' '}
            <span className="muted">
              (<Instant at={dueAt} />)
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
