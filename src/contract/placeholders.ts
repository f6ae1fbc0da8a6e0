/** The placeholders of a task's texts, such as `{{instant}}`. Checks of documents and workers share these definitions. */

/** All valid names, besides `params.NAME`. */
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

/** `name` is undefined for `{{{{`, which stands for two literal braces. */
export interface Placeholder {
  readonly name: string | undefined;
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/**
 * The placeholders of a text, from left to right, in linear time. A regular expression with blanks on both sides of the name
 * took cubic time (53 s for 4,000 blanks).
 */
export function* scanPlaceholders(text: string): Generator<Placeholder, void, undefined> {
  for (let start = text.indexOf('{{'); start >= 0; ) {
    const found = placeholderAt(text, start);
    if (found !== undefined) yield found;
    start = text.indexOf('{{', found?.end ?? start + 1);
  }
}

const brace = /[{}]/g;

/** The name of the placeholder, if the text is one placeholder and nothing else. */
export function onlyPlaceholder(text: string): string | undefined {
  const found = text.startsWith('{{') ? placeholderAt(text, 0) : undefined;
  return found?.end === text.length ? found.name : undefined;
}

function placeholderAt(text: string, start: number): Placeholder | undefined {
  if (text.startsWith('{{{{', start)) return { name: undefined, start, end: start + 4 };
  brace.lastIndex = start + 2;
  const close = brace.exec(text)?.index;
  if (close === undefined || !text.startsWith('}}', close)) return undefined;
  return { name: text.slice(start + 2, close).trim(), start, end: close + 2 };
}

export function isPlaceholderName(name: string): name is PlaceholderName {
  return placeholderNames.some((known) => known === name);
}

const longestQuoted = 60;

/** Formats a placeholder for messages. Long names are cut, because a name may be as long as a document. */
export function quotePlaceholder(name: string): string {
  return `{{${name.length > longestQuoted ? `${name.slice(0, longestQuoted)}…` : name}}}`;
}

/** Completes "the placeholder …". Checks of documents and failed runs use the same sentence. */
export function meansNothing(name: string): string {
  return (
    `${quotePlaceholder(name)} does not exist; valid names are ${placeholderNames.join(', ')} and ${paramPrefix}NAME. ` +
    'Write {{{{ for two literal braces'
  );
}
