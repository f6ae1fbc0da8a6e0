/**
 * Fields, variables and results, as a node sees them.
 *
 * - `f` belongs to the execution. A branch of `parallel` or `each`, and an attempt of a step with `retry`, has a frame: what is set
 *   inside is seen inside only, until the branch or the step has ended well.
 * - `v` belongs to the nearest step around with `vars` that has the name. A new name goes to the nearest scope.
 * - `ret` is the result of the last step of the frame.
 */
import type { Scope } from '../expression/compile.ts';
import type { Fuel, Value, ValueMap } from '../expression/values.ts';
import { keysOf } from '../expression/values.ts';
import { isObject, type Json, type JsonObject, memberOf } from '../json.ts';
import type { Merge, Target, UndoBlock } from '../language/step.ts';
import type { Draft } from './draft.ts';
import type { FlowNode, Frame } from './state.ts';

/** The node and those around it, the innermost first. */
export function* lineage(draft: Draft, nid: string | null): Generator<readonly [string, FlowNode], void, undefined> {
  for (let at = nid; at !== null; ) {
    const node = draft.node(at);
    if (node === undefined) return;
    yield [at, node];
    at = node.parent;
  }
}

/** All fields as a node sees them. */
function fieldsOf(draft: Draft, nid: string | null, onMerge: (fields: JsonObject) => void = () => {}): JsonObject {
  if (frameNode(draft, nid) === undefined) return draft.f;
  const frames: Frame[] = [];
  for (const [, { frame }] of lineage(draft, nid)) if (frame !== undefined) frames.push(frame);
  for (const fields of [draft.f, ...frames.map(({ f }) => f)]) onMerge(fields);
  return frames.reduceRight<JsonObject>((fields, frame) => ({ ...fields, ...frame.f }), draft.f);
}

function variablesOf(draft: Draft, nid: string | null, onMerge: (fields: JsonObject) => void = () => {}): JsonObject {
  const scopes: JsonObject[] = [];
  for (const [, { vars }] of lineage(draft, nid)) if (vars !== undefined) scopes.push(vars);
  if (scopes.length <= 1) return scopes[0] ?? {};
  for (const scope of scopes) onMerge(scope);
  return Object.assign({}, ...scopes.toReversed());
}

function frameNode(draft: Draft, nid: string | null): readonly [string, Frame] | undefined {
  for (let at = nid; at !== null; ) {
    const node = draft.node(at);
    if (node === undefined) return undefined;
    if (node.frame !== undefined) return [at, node.frame];
    at = node.parent;
  }
  return undefined;
}

export function resultOf(draft: Draft, nid: string | null): Json {
  const found = frameNode(draft, nid);
  return found === undefined ? draft.ret : found[1].ret;
}

export function setResult(draft: Draft, nid: string | null, ret: Json): void {
  const found = frameNode(draft, nid);
  if (found === undefined) draft.ret = ret;
  else draft.patch(found[0], { frame: { ...found[1], ret } });
}

export function assign(draft: Draft, nid: string, { root, keys }: Target, value: Json): void {
  if (root === 'ret') setResult(draft, nid, value);
  else if (root === 'v') assignVariable(draft, nid, keys, value);
  else {
    const [first = '', ...rest] = keys;
    setField(draft, nid, first, placed(memberOf(fieldsOf(draft, nid), first), rest, value));
  }
}

function setField(draft: Draft, nid: string | null, key: string, value: Json): void {
  const found = frameNode(draft, nid);
  if (found === undefined) draft.setField(key, value);
  else draft.patch(found[0], { frame: { ...found[1], f: { ...found[1].f, [key]: value } } });
}

function assignVariable(draft: Draft, nid: string, keys: readonly string[], value: Json): void {
  const [first = '', ...rest] = keys;
  let nearest: readonly [string, JsonObject] | undefined;
  let root = nid;
  for (const [at, { vars }] of lineage(draft, nid)) {
    root = at;
    if (vars === undefined) continue;
    nearest ??= [at, vars];
    if (!Object.hasOwn(vars, first)) continue;
    nearest = [at, vars];
    break;
  }
  const [owner, vars] = nearest ?? [root, {}];
  draft.patch(owner, { vars: { ...vars, [first]: placed(memberOf(vars, first), rest, value) } });
}

/** A copy of a value with another one at a path inside. */
function placed(value: Json | undefined, keys: readonly string[], inner: Json): Json {
  const [first, ...rest] = keys;
  if (first === undefined) return inner;
  const object = value !== undefined && isObject(value) ? value : {};
  return { ...object, [first]: placed(memberOf(object, first), rest, inner) };
}

/** Adds the fields of a frame to those around a node. */
export function mergeFields(draft: Draft, nid: string | null, fields: JsonObject): void {
  const found = frameNode(draft, nid);
  if (found === undefined) draft.setFields(fields);
  else draft.patch(found[0], { frame: { ...found[1], f: { ...found[1].f, ...fields } } });
}

/** The fields of an earlier and a later answer together. Where both are objects, their members are merged. */
export function mergeAnswers(earlier: JsonObject, later: JsonObject, merge: Merge): JsonObject {
  if (merge === 'ignore') return earlier;
  return merge === 'first' ? overlay(later, earlier) : overlay(earlier, later);
}

function overlay(under: JsonObject, over: JsonObject): JsonObject {
  const entries = Object.entries(over).map(([key, value]) => {
    const other = memberOf(under, key);
    return [key, other !== undefined && isObject(other) && isObject(value) ? overlay(other, value) : value] as const;
  });
  return { ...under, ...Object.fromEntries(entries) };
}

/** Fields and variables of a compensation. */
export interface UndoVariables extends JsonObject {
  readonly f: JsonObject;
  readonly v: JsonObject;
}

/** What a compensation needs of this moment: the variables that it reads, and no others. */
export function captureUndo(draft: Draft, nid: string, { reads }: UndoBlock): UndoVariables {
  const f = pick(fieldsOf(draft, nid), reads, 'f');
  const locals = [...reads].filter((name) =>
    ['it', 'index', 'key', 'event', 'err', 'ret'].includes(name.split('.')[0] ?? ''),
  );
  const v = { ...pick(variablesOf(draft, nid), reads, 'v'), ...pickLocals(draft, nid, locals) };
  return { f, v };
}

function pick(values: JsonObject, reads: readonly string[], root: string): JsonObject {
  if (reads.includes(root)) return values;
  const keys = reads.filter((name) => name.startsWith(`${root}.`)).map((name) => name.slice(root.length + 1));
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(values, key)).map((key) => [key, values[key] ?? null]));
}

/** Kept under names that no variable can have. */
function pickLocals(draft: Draft, nid: string, names: readonly string[]): JsonObject {
  const roots = new Set(names.map((name) => name.split('.')[0] ?? ''));
  return Object.fromEntries([...roots].map((name) => [`$${name}`, findLocal(draft, nid, name)]));
}

/** Splits what `captureUndo` has kept into variables and locals. */
export function undoLocals({ v }: UndoVariables): { readonly vars: JsonObject; readonly locals: JsonObject } {
  const entries = Object.entries(v);
  return {
    vars: Object.fromEntries(entries.filter(([key]) => !key.startsWith('$'))),
    locals: Object.fromEntries(
      entries.filter(([key]) => key.startsWith('$')).map(([key, value]) => [key.slice(1), value]),
    ),
  };
}

function findLocal(draft: Draft, nid: string | null, name: string): Json {
  for (const [, { locals }] of lineage(draft, nid))
    if (locals !== undefined && Object.hasOwn(locals, name)) return locals[name] ?? null;
  return name === 'ret' ? resultOf(draft, nid) : null;
}

/** What expressions may ask of the world. */
export interface Surroundings {
  readonly nowMs: number;
  readonly execution: JsonObject;
  /** The links by which people answer open tasks, by the task's name. */
  links(fuel: Fuel): JsonObject;
}

/** The variables of the expressions of a node. `more`: further ones, such as the error that a handler is asked about. */
export function scopeOf(draft: Draft, nid: string | null, around: Surroundings, more: JsonObject = {}): Scope {
  // a macro asks again for every item
  const known = new Map<string, Value>();
  const find = (name: string, fuel: Fuel): Value => {
    switch (name) {
      case 'f':
        return fieldsOf(draft, nid, spendingOn(fuel));
      case 'v':
        return variablesOf(draft, nid, spendingOn(fuel));
      case 'input':
        return draft.input;
      case 'now':
        return new Date(around.nowMs);
      case 'execution':
        return around.execution;
      case 'links':
        return around.links(fuel);
      default:
        return findLocal(draft, nid, name);
    }
  };
  return {
    lookup(name, fuel): Value {
      if (Object.hasOwn(more, name)) return more[name] ?? null;
      const value = known.get(name) ?? find(name, fuel);
      known.set(name, value);
      return value;
    },
  };
}

/** Merging many fields is work. */
function spendingOn(fuel: Fuel): (fields: ValueMap) => void {
  return (fields) => fuel.spend(keysOf(fields, fuel).length / 8);
}
