/**
 * Warns of unknown placeholders in texts that are expanded when a run starts: the run would end in `error`. Params are not
 * checked, because each run may be given its own.
 */
import { isPlaceholderName, meansNothing, paramPrefix, scanPlaceholders } from '../../contract/placeholders.ts';
import type { Fault } from '../../errors.ts';
import type { TaskDocument } from './document.ts';
import { maxFaults } from '../../documents/faults.ts';
import { documentedKinds } from '../../runtimes/kinds.ts';
import { formatPath, isRecord, type PathPart } from '../../kernel/text/path.ts';

type Place = { readonly path: readonly PathPart[]; readonly text: string };

/** Stops after `maxFaults` warnings, because a document may consist of nothing but placeholders. */
export function placeholderWarnings(tasks: readonly TaskDocument[]): Fault[] {
  const warnings: Fault[] = [];
  for (const [i, task] of tasks.entries()) {
    for (const { path, text } of textsOf(task)) {
      for (const name of unknownIn(text)) {
        if (warnings.length === maxFaults) return warnings;
        warnings.push({ path: formatPath(['tasks', i, ...path]), message: `the placeholder ${meansNothing(name)}` });
      }
    }
  }
  return warnings;
}

function unknownIn(text: string): Set<string> {
  const unknown = new Set<string>();
  for (const { name } of scanPlaceholders(text)) {
    if (name !== undefined && !isPlaceholderName(name) && !name.startsWith(paramPrefix)) unknown.add(name);
    if (unknown.size === maxFaults) break;
  }
  return unknown;
}

function textsOf(task: TaskDocument): Place[] {
  return documentedKinds.flatMap(({ kind, templates }) => {
    const field = task[kind];
    if (field === undefined || field === null) return [];
    const texts = templates.flatMap((name) => textsIn(field[name], [kind, name]));
    return [...texts, ...envTexts(field['env'], [kind, 'env'])];
  });
}

/** Values only. The names of variables and of stash entries are not expanded. */
function envTexts(env: unknown, path: readonly PathPart[]): Place[] {
  if (Array.isArray(env)) {
    return env.map((line: unknown, i) => ({ path: [...path, i], text: String(line).replace(/^[^=]*=/, '') }));
  }
  if (!isRecord(env)) return [];
  return Object.entries(env).flatMap(([name, value]) =>
    typeof value === 'string' ? [{ path: [...path, name], text: value }] : [],
  );
}

function textsIn(value: unknown, path: readonly PathPart[]): Place[] {
  if (typeof value === 'string') return [{ path, text: value }];
  if (Array.isArray(value)) return value.flatMap((item: unknown, i) => textsIn(item, [...path, i]));
  return isRecord(value) ? Object.entries(value).flatMap(([key, item]) => textsIn(item, [...path, key])) : [];
}
