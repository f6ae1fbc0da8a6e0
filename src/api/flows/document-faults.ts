/** What is wrong with a flow document, as an answer. */
import { type Fault, MillraceError } from '../../errors.ts';
import type { Definition } from '../../flows/definitions/read-definition.ts';
import { mayRun } from '../../runtimes/local-tasks.ts';
import type { ApiContext } from '../context.ts';

export function badDocument(faults: readonly Fault[]): MillraceError {
  const detail = faults.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
  return new MillraceError('bad_document', detail, { faults });
}

/** Rejects tasks that this tenant may not run. */
export function rejectLocalTasks({ tasks }: Definition, { tenant, settings }: ApiContext): void {
  const faults = tasks
    .filter(({ kind }) => !mayRun(kind, tenant.name, settings.localTasks))
    .map(({ path, kind }) => ({
      path,
      message: `only the tenant default may run ${kind} tasks (MILLRACE_LOCAL_TASKS=default)`,
    }));
  if (faults.length > 0) throw badDocument(faults);
}
