/**
 * The data of a version that workers need, stored with its document when it is applied. Parsing a document takes 0.3 ms even
 * if it is short, and a thousand jobs may be due at one instant for the first time.
 *
 * Large versions are not stored this way, because each task would be looked up in a long text. Their documents are parsed and
 * cached (`document/cache.ts`).
 */
import type { JobDefinition, JsonObject, TaskDefinition } from './definition.ts';

/** Changes with the shape below, or with what it contains. A version that was stored in another form is parsed. */
export const workForm = 1;

const maxWorkChars = 64 * 1024;

type TaskWork = Pick<TaskDefinition, 'timeoutMs' | 'queue' | 'runtime'>;

interface VersionWork {
  readonly form: number;
  readonly params: JsonObject;
  readonly tasks: Readonly<Record<string, TaskWork>>;
}

/** Returns the data as JSON; null if it is too long. */
export function formatWork({ params, tasks }: Pick<JobDefinition, 'params' | 'tasks'>): string | null {
  const work: VersionWork = {
    form: workForm,
    params,
    tasks: Object.fromEntries(
      tasks.map(({ name, timeoutMs, queue, runtime }) => [name, { timeoutMs, queue, runtime }]),
    ),
  };
  const text = JSON.stringify(work);
  return text.length > maxWorkChars ? null : text;
}
