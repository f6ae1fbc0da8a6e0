/** What compensations need of the moment at which their step was completed. It is stored apart from the node that will run them. */
import type { JsonObject } from '../json.ts';
import type { UndoBlock } from '../language/step.ts';
import type { Draft } from './draft.ts';
import { captureUndo, undoLocals, type UndoVariables } from './fields.ts';
import type { Run } from './run.ts';
import type { Frame, UndoEntry } from './state.ts';

export function keepUndo(run: Run, nid: string, undo: UndoBlock): UndoEntry {
  const variables = captureUndo(run.draft, nid, undo);
  run.noteAdded(variables);
  const key = `undo/${nid}`;
  run.draft.keep(key, variables);
  return { at: undo.block.at, key };
}

/** The scopes of a compensation that begins. */
export function takeUndo(
  draft: Draft,
  { key }: UndoEntry,
): { readonly vars: JsonObject; readonly locals: JsonObject; readonly frame: Frame } {
  const variables = (draft.stored(key) as UndoVariables | undefined) ?? { f: {}, v: {} };
  draft.drop(key);
  return { ...undoLocals(variables), frame: { f: variables.f, ret: null } };
}

/** These compensations will not run. */
export function dropUndo(draft: Draft, entries: readonly UndoEntry[]): void {
  for (const { key } of entries) draft.drop(key);
}
