/** Renders the changes of an applied document: one line per path, before → after. */
import type { Output } from './output.ts';
import type { Style } from './paint.ts';
import { oneLine, truncate } from './width.ts';

export interface Change {
  readonly path: string;
  readonly change: 'added' | 'removed' | 'changed';
  readonly before?: unknown;
  readonly after?: unknown;
}

const marks = { added: '+', removed: '-', changed: '~' } as const;
const styles = { added: 'green', removed: 'red', changed: 'yellow' } as const satisfies Record<Change['change'], Style>;
const maxValueColumns = 300;

export function renderChanges(changes: readonly Change[], paint: Output['paint']): string[] {
  return changes.map((change) => {
    const path = change.path === '' ? '(the whole document)' : oneLine(change.path);
    return `    ${paint(styles[change.change], `${marks[change.change]} ${path}`)}${valuesOf(change, paint)}`;
  });
}

function valuesOf(change: Change, paint: Output['paint']): string {
  if (change.change === 'added') return `: ${show(change.after)}`;
  if (change.change === 'removed') return `: ${show(change.before)}`;
  return `: ${show(change.before)} ${paint('dim', '→')} ${show(change.after)}`;
}

function show(value: unknown): string {
  return truncate(oneLine(value === undefined ? 'nothing' : JSON.stringify(value)), maxValueColumns);
}
