/** The data of an execution: its fields, the result of the last step, and its input. Sealed fields are dots. */
import type { ReactNode } from 'react';
import { JsonView } from '../kit/json/json-view.tsx';
import type { ExecutionViewProps } from './use-executions.ts';

export function DataView({ execution: { fields, result, input, error, cut } }: ExecutionViewProps) {
  const names = Object.keys(fields);
  return (
    <div className="execution-data">
      {cut.length === 0 ? null : <p className="note warned">Too long to be shown: {cut.join(', ')}.</p>}
      <section aria-labelledby="data-fields">
        <h2 id="data-fields">Fields</h2>
        {names.length === 0 ? (
          <p className="muted">None. They begin as the members of the input, and steps set them.</p>
        ) : (
          <dl className="data-fields">
            {names.map((name) => (
              <div key={name}>
                <dt>
                  <code>f.{name}</code>
                </dt>
                <dd>
                  <JsonView label={`f.${name}`} value={fields[name]} />
                </dd>
              </div>
            ))}
          </dl>
        )}
      </section>
      {error === null ? null : (
        <Part title="Error">
          <JsonView label="Error" value={error} />
        </Part>
      )}
      <Part title="Result of the last step (ret)">
        <JsonView label="Result" value={result} />
      </Part>
      <Part title="Input">
        <JsonView label="Input" value={input} />
      </Part>
    </div>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}
