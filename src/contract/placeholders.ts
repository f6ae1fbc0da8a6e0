/** The placeholders of a task's texts, `{{instant}}` and the like: those who check a document and those who run it agree. */

/** All that mean something, beside `params.NAME`. */
const placeholderNames = [
  'instant',
  'instant.date',
  'instant.unix',
  'run',
  'attempt',
  'priority',
  'idempotency_key',
  'tenant',
  'task',
  'task.id',
  'job',
  'job.id',
  'project',
  'project.id',
  'url',
  'params',
] as const;
export type PlaceholderName = (typeof placeholderNames)[number];

export const paramPrefix = 'params.';

/** Captures the name; `{{{{`, which stands for `{{` itself, has none. */
export const placeholder = /\{\{\{\{|\{\{\s*([^{}]*?)\s*\}\}/g;

export function isPlaceholderName(name: string): name is PlaceholderName {
  return placeholderNames.some((known) => known === name);
}

/** Follows "the placeholder": the same words before a run and in it. */
export function meansNothing(name: string): string {
  return (
    `{{${name}}} means nothing here; there are ${placeholderNames.join(', ')} and ${paramPrefix}NAME. ` +
    'Write {{{{ for two literal braces'
  );
}
