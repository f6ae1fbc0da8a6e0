/** A patch as a user writes it: fields as JSON, and the steps that replace a step as YAML. */
import { stringify } from 'yaml';
import { parsePath, readText } from '../../document/fault-places.ts';
import { isObject, parseObject } from '../../kit/json/json-text.ts';
import type { TreeStep } from '../tree/tree-model.ts';

export interface PatchDraft {
  readonly fields: string;
  /** The place of the step to replace; empty: none. */
  readonly path: string;
  readonly steps: string;
}

export interface Patch {
  readonly fields?: Record<string, unknown>;
  readonly swap?: Record<string, unknown[]>;
}

export type ReadPatch =
  | { readonly ok: true; readonly patch: Patch; readonly isEmpty: boolean }
  | { readonly ok: false; readonly stepsFault: string | undefined };

/** `source`: the step as it is now, which is no change. */
export function readPatch({ fields, path, steps }: PatchDraft, source: string): ReadPatch {
  const given = parseObject(fields);
  const swaps = path !== '' && steps !== source;
  const read = swaps ? readSteps(steps) : undefined;
  if (!given.ok || typeof read === 'string')
    return { ok: false, stepsFault: typeof read === 'string' ? read : undefined };
  const set = isObject(given.value) ? { ...given.value } : {};
  const hasFields = Object.keys(set).length > 0;
  const patch = { ...(hasFields && { fields: set }), ...(read !== undefined && { swap: { [path]: read } }) };
  return { ok: true, patch, isEmpty: Object.keys(patch).length === 0 };
}

/** The steps, or what is wrong with them. */
function readSteps(text: string): unknown[] | string {
  const { document, faults } = readText(text);
  const [fault] = faults;
  if (fault !== undefined) return `Line ${fault.line}: ${fault.message}`;
  const value: unknown = document.toJS();
  if (Array.isArray(value)) return value;
  return isObject(value) ? [value] : 'Enter a list of steps, such as - task: name';
}

/** The step at a place of a document, as a list of one step in YAML; empty if there is none. */
export function sourceOf(document: unknown, path: string): string {
  const step = valueAt(document, path);
  return step === undefined ? '' : stringify([step], { lineWidth: 100 });
}

export function valueAt(document: unknown, path: string): unknown {
  let value = document;
  for (const part of parsePath(path)) {
    if (typeof part === 'number') value = Array.isArray(value) ? (value[part] as unknown) : undefined;
    else value = isObject(value) ? value[part] : undefined;
  }
  return value;
}

interface Choice {
  readonly value: string;
  readonly label: string;
}

/** The steps that may be replaced, in the order of the document; blocks such as `then` are parts of their step. */
export function replaceable(root: TreeStep): Choice[] {
  const inside = (step: TreeStep): Choice[] => {
    const own = step.branch === null && step.at !== '0' ? [choiceOf(step)] : [];
    return [...own, ...step.children.flatMap(inside)];
  };
  return inside(root);
}

function choiceOf({ path, verb, title }: TreeStep): Choice {
  return { value: path, label: `${path}: ${title === '' || title === verb ? verb : `${verb} ${title}`}` };
}
