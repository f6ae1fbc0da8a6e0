/** From what people write (`project/job`, a task's name) to the ids that the API speaks. */
import { MillraceError } from '../../errors.ts';
import { readInstant } from '../../documents/values.ts';
import { isId } from '../../kernel/id.ts';
import { UsageError } from './exit.ts';
import type { Server } from './server.ts';

/** A job by `project/name` or by its UUID. */
export async function findJob(server: Server, reference: string): Promise<string> {
  if (isId(reference)) return reference;
  const [project, name, ...more] = reference.split('/');
  if (!project || !name || more.length > 0) {
    throw new UsageError(`${JSON.stringify(reference)} is not a job; write it as PROJECT/NAME, or give its UUID`);
  }
  const found = await server.tenant('GET /api/jobs', { query: { project, name } });
  if ('items' in found) throw new MillraceError('not_found', `there is no job ${reference}`);
  return found.id;
}

/** A project by its name or its UUID. */
export async function findProject(server: Server, reference: string): Promise<{ id: string; name: string }> {
  if (isId(reference)) return server.tenant('GET /api/projects/{id}', { params: { id: reference } });
  const found = await server.tenant('GET /api/projects', { query: { name: reference } });
  if (!('id' in found)) throw new MillraceError('not_found', `there is no project ${reference}`);
  return found;
}

/** A task of a job by name, or by its UUID. */
export async function findTask(server: Server, jobId: string, reference: string): Promise<string> {
  const tasks = await server.tenant('GET /api/jobs/{id}/tasks', { params: { id: jobId } });
  const found = tasks.find((task) => task.name === reference || task.task_id === reference);
  if (found) return found.task_id;
  const names = tasks.map((task) => task.name).join(', ') || 'none';
  throw new MillraceError('not_found', `the job has no task ${reference}; its tasks: ${names}`);
}

/** A trigger of a job by name, or by its UUID. */
export async function findTrigger(server: Server, jobId: string, reference: string): Promise<string> {
  const triggers = await server.tenant('GET /api/jobs/{id}/triggers', { params: { id: jobId } });
  const found = triggers.find((trigger) => trigger.trigger_name === reference || trigger.trigger_id === reference);
  if (found) return found.trigger_id;
  const names = triggers.map((trigger) => trigger.trigger_name).join(', ') || 'none';
  throw new MillraceError('not_found', `the job has no trigger ${reference}; its triggers: ${names}`);
}

/** A run's UUID, as `millrace runs` shows it. */
export function checkRunId(text: string): string {
  if (isId(text)) return text;
  throw new UsageError(`${JSON.stringify(text)} is not the UUID of a run; millrace runs lists them`);
}

/** Checked here, so that a slip is a usage error rather than a refusal. */
export function checkInstant(text: string): string {
  const read = readInstant(text);
  if (read.ok) return new Date(read.value).toISOString();
  throw new UsageError(`the instant ${JSON.stringify(text)} ${read.message}`);
}
