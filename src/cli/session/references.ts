/** Resolves the references that users type (`project/job`, the name of a task) to the ids of the API. */
import { MillraceError } from '../../errors.ts';
import { readInstant } from '../../documents/values.ts';
import { isId } from '../../kernel/id.ts';
import { UsageError } from './exit.ts';
import type { Server } from './server.ts';

/** Finds a job by `project/name` or by its UUID. */
export async function findJob(server: Server, reference: string): Promise<string> {
  if (isId(reference)) return reference;
  const [project, name, ...more] = reference.split('/');
  if (!project || !name || more.length > 0) {
    throw new UsageError(`${JSON.stringify(reference)} is not a job; write it as PROJECT/NAME, or give its UUID`);
  }
  const found = await server.tenant('GET /api/jobs', { query: { project, name } });
  if ('items' in found) throw new MillraceError('not_found', `job not found: ${reference}`);
  return found.id;
}

/** Finds a project by its name or its UUID. */
export async function findProject(server: Server, reference: string): Promise<{ id: string; name: string }> {
  if (isId(reference)) return server.tenant('GET /api/projects/{id}', { params: { id: reference } });
  const found = await server.tenant('GET /api/projects', { query: { name: reference } });
  if (!('id' in found)) throw new MillraceError('not_found', `project not found: ${reference}`);
  return found;
}

/** Finds a task of a job by its name or its UUID. */
export async function findTask(server: Server, jobId: string, reference: string): Promise<string> {
  const tasks = await server.tenant('GET /api/jobs/{id}/tasks', { params: { id: jobId } });
  const found = tasks.find((task) => task.name === reference || task.task_id === reference);
  if (found) return found.task_id;
  const names = tasks.map((task) => task.name).join(', ') || 'none';
  throw new MillraceError('not_found', `the job has no task ${reference}; its tasks: ${names}`);
}

/** Finds a trigger of a job by its name or its UUID. */
export async function findTrigger(server: Server, jobId: string, reference: string): Promise<string> {
  const triggers = await server.tenant('GET /api/jobs/{id}/triggers', { params: { id: jobId } });
  const found = triggers.find((trigger) => trigger.trigger_name === reference || trigger.trigger_id === reference);
  if (found) return found.trigger_id;
  const names = triggers.map((trigger) => trigger.trigger_name).join(', ') || 'none';
  throw new MillraceError('not_found', `the job has no trigger ${reference}; its triggers: ${names}`);
}

/** Checks that the text is the UUID of a run, as `millrace runs` prints it. */
export function checkRunId(text: string): string {
  if (isId(text)) return text;
  throw new UsageError(`${JSON.stringify(text)} is not the UUID of a run; millrace runs lists them`);
}

/** Checks an instant on the client, so that a typing error is a usage error (exit code 2). */
export function checkInstant(text: string): string {
  const read = readInstant(text);
  if (read.ok) return new Date(read.value).toISOString();
  throw new UsageError(`the instant ${JSON.stringify(text)} ${read.message}`);
}
