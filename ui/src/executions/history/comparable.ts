/** An execution as a document of which two revisions can be compared line by line. */
import type { Execution } from '../use-executions.ts';

export function comparable({ status, fields, result, error, nodes, early }: Execution): object {
  return {
    status,
    fields,
    result,
    ...(error === null ? {} : { error }),
    ...(early.total === 0 ? {} : { early_signals: early.names }),
    steps: Object.fromEntries(
      nodes.map(({ id, path, verb, name, phase, attempt, waits }) => [
        `${path} (${id})`,
        {
          step: name === null ? verb : `${verb} ${name}`,
          phase,
          ...(attempt === 1 ? {} : { attempt }),
          ...(waits === null ? {} : { waits: waits.message }),
        },
      ]),
    ),
  };
}
