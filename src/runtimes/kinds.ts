/**
 * The table of the kinds of work. Documents, the API, the JSON Schema, lanes and workers follow it; README.md says how to add
 * a kind.
 */
import type { RuntimeBlock } from '../contract/wire.ts';
import { docker } from './docker/block.ts';
import { functionKind } from './function/block.ts';
import { http } from './http/block.ts';
import { none } from './none/block.ts';
import { process } from './process/block.ts';
import type { DocumentedKind, KindOfWork, Texts, WorkView } from './work.ts';

/** Kinds with a field in documents. A task has at most one of these fields. */
const documented = { docker, process, function: functionKind, http };
const kinds = { ...documented, none };

export type WorkKind = keyof typeof kinds;
export type DocumentedWorkKind = keyof typeof documented;
/** The work that a runtime executes: a block with all placeholders expanded. */
export type Work = ReturnType<(typeof kinds)[WorkKind]['expand']>;

export const workKinds: readonly WorkKind[] = Object.values(kinds).map(({ kind }) => kind);
export const documentedKinds: readonly DocumentedKind<DocumentedWorkKind, Work>[] = Object.values(documented);

/** Undefined: this release does not know the kind. */
export function findKind(kind: string): KindOfWork<WorkKind, Work> | undefined {
  return isWorkKind(kind) ? kinds[kind] : undefined;
}

function isWorkKind(kind: string): kind is WorkKind {
  return Object.hasOwn(kinds, kind);
}

/** The block of a task document that has passed all checks. */
export function buildBlock(task: Readonly<Record<string, unknown>>): RuntimeBlock {
  for (const each of documentedKinds) {
    const field = task[each.kind];
    if (field !== undefined && field !== null) return each.build(field);
  }
  return { kind: 'none' };
}

export function expandBlock(block: RuntimeBlock, texts: Texts): Work {
  return kindOf(block).expand(block, texts);
}

export function viewBlock(block: RuntimeBlock, texts: Texts): WorkView {
  return kindOf(block).view(block, texts);
}

function kindOf({ kind }: RuntimeBlock): KindOfWork<WorkKind, Work> {
  const found = findKind(kind);
  if (found === undefined) throw new Error(`it is of the kind "${kind}", which this release does not know`);
  return found;
}
