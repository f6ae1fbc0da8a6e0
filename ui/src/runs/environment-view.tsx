/** The input of a run: program, variables, parameters. Values of secrets are never sent to the UI. */
import { Answer } from '../kit/answer.tsx';
import { Fact, Facts } from '../kit/facts.tsx';
import { formatSpan } from '../time/format.ts';
import { type Environment, type RunDetail, useEnvironment } from './use-runs.ts';

export function EnvironmentView({ run }: { readonly run: RunDetail }) {
  const environment = useEnvironment(run.id);
  return (
    <Answer of={environment} what="Reading the environment">
      {(data) => (
        <div className="environment">
          <Program environment={data} />
          {data.variables.length === 0 ? null : <Variables variables={data.variables} />}
          {Object.keys(data.params).length === 0 ? null : <Data title="Parameters" value={data.params} />}
          {data.input === null || data.input === undefined ? null : <Data title="Input" value={data.input} />}
          {run.result === null || run.result === undefined ? null : <Data title="Result" value={run.result} />}
        </div>
      )}
    </Answer>
  );
}

function Program({ environment }: { readonly environment: Environment }) {
  const { runtime, queue, command, image, cwd, container, timeout_seconds: timeout } = environment;
  return (
    <>
      <Facts>
        <Fact term="Runtime">{runtime}</Fact>
        <Fact term="Queue">{queue}</Fact>
        {image === null ? null : (
          <Fact term="Image">
            <code>{image}</code>
          </Fact>
        )}
        {cwd === null ? null : (
          <Fact term="Folder">
            <code>{cwd}</code>
          </Fact>
        )}
        {Object.entries(container ?? {}).map(([term, value]) => (
          <Fact key={term} term={term.replace(/^./, (first) => first.toUpperCase())}>
            <code>{value}</code>
          </Fact>
        ))}
        <Fact term="Time limit">{timeout === null ? 'none' : formatSpan(timeout * 1_000)}</Fact>
      </Facts>
      {command === null ? null : (
        <section aria-labelledby="environment-command">
          <h2 id="environment-command">Command</h2>
          <ol className="command-words">
            {command.map((word, index) => (
              // the same word may stand twice
              <li key={index}>
                <code>{word}</code>
              </li>
            ))}
          </ol>
        </section>
      )}
    </>
  );
}

function Variables({ variables }: { readonly variables: Environment['variables'] }) {
  return (
    <section aria-labelledby="environment-variables">
      <h2 id="environment-variables">Variables</h2>
      <table className="table variables">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col" className="wide">
              Given by
            </th>
          </tr>
        </thead>
        <tbody>
          {variables.map(({ name, value, stash, from }) => (
            <tr key={`${from} ${name}`}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>
                {value === null ? (
                  <Hidden stash={stash} from={from} />
                ) : (
                  <code className="variable-value">{value}</code>
                )}
              </td>
              <td className="wide muted">{givenBy[from]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const givenBy = { document: 'the job document', millrace: 'millrace', worker: 'the worker' } as const;

interface HiddenProps {
  readonly stash: string | null;
  readonly from: keyof typeof givenBy;
}

function Hidden({ stash, from }: HiddenProps) {
  if (from === 'worker') return <span className="muted">depends on the worker</span>;
  if (stash === null) return <span className="muted">hidden</span>;
  return (
    <span className="muted">
      hidden, from stash entry <code>{stash}</code>
    </span>
  );
}

function Data({ title, value }: { readonly title: string; readonly value: unknown }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <pre className="sunken-text">{JSON.stringify(value, undefined, 2)}</pre>
    </section>
  );
}
