/** The work of a step outside of its execution: a run with its log, a task of a person, or an execution that it has called. */
import { Link } from 'wouter';
import { Answer } from '../../kit/answer.tsx';
import { JsonView } from '../../kit/json/json-view.tsx';
import { State } from '../../kit/state.tsx';
import { LogView } from '../../runs/log/log-view.tsx';
import { useEnvironment, useRun } from '../../runs/use-runs.ts';
import { nameOf } from '../execution-name.ts';
import { Status } from '../status.tsx';
import { type Node, useExecution } from '../use-executions.ts';
import { Section } from './section.tsx';

interface Props {
  readonly execution: string;
  readonly node: Node;
}

export function NodeWork({ node: { run, call, workitem } }: Props) {
  return (
    <>
      {run === null ? null : <RunOfNode run={run} />}
      {workitem === null ? null : (
        <Section title="Task of a person">
          <p>
            <Link href={`/workitems?item=${workitem}`}>Open the work item</Link>
          </p>
        </Section>
      )}
      {call === null ? null : <CalledExecution id={call} />}
    </>
  );
}

function RunOfNode({ run: id }: { readonly run: string }) {
  const run = useRun(id);
  return (
    <Section title="Run">
      <Answer of={run} what="Reading the run">
        {({ state, attempt, finished_at: finishedAt, started_at: startedAt }) => (
          <>
            <p className="side-panel-facts">
              <State state={state} />
              <Link href={`/runs/${id}`}>Open the run</Link>
              <span className="muted">attempt {attempt}</span>
            </p>
            <RunInput run={id} />
            {startedAt === null ? null : (
              <div className="node-log">
                <LogView run={id} hasEnded={finishedAt !== null} />
              </div>
            )}
          </>
        )}
      </Answer>
    </Section>
  );
}

function RunInput({ run }: { readonly run: string }) {
  const { data } = useEnvironment(run);
  if (data?.input == null) return null;
  return <JsonView label="Input of the run" value={data.input} />;
}

function CalledExecution({ id }: { readonly id: string }) {
  return (
    <Section title="Called execution">
      <Answer of={useExecution(id)} what="Reading the called execution">
        {(called) => (
          <p className="side-panel-facts">
            <Status status={called.status} />
            <Link href={`/executions/${id}`}>
              {called.flow} {nameOf(called)}
            </Link>
          </p>
        )}
      </Answer>
    </Section>
  );
}
