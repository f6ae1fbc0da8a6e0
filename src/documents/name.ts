/**
 * The rules for names. The names of projects, jobs, triggers and tasks may contain any printable character except `/` and
 * `@`, which delimit references.
 */

export const longestName = 200;

/**
 * Control characters, line and paragraph separators, lone surrogates, and invisible format characters, except the
 * joiners that scripts and emoji need.
 */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/u;

/** Returns what is wrong with a name, or undefined. */
export function nameFault(text: string): string | undefined {
  if (text === '') return 'must not be empty';
  if (/[/@]/.test(text)) return 'must not contain / or @, which delimit references';
  return printableFault(text);
}

/** The rule for names that do not appear in references (functions, stash entries): `/` and `@` are allowed. */
export function printableFault(text: string): string | undefined {
  if (text === '') return 'must not be empty';
  if (text.trim() !== text) return 'must not begin or end with a space';
  if (unprintable.test(text)) return 'must not contain control or other unprintable characters';
  if ([...text].length > longestName) return `must not be longer than ${longestName} characters`;
  return undefined;
}

const queue = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export function queueFault(text: string): string | undefined {
  if (queue.test(text)) return undefined;
  return 'must be 1 to 100 letters, digits, dots, underscores or hyphens, and begin with a letter or digit';
}
