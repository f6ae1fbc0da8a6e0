/**
 * Replaces steps in a document, by their places: `steps[1].then[0]`. Pure.
 *
 * 1. One step replaces a step; several become a `sequence`, so that the positions of all other steps stay what they are.
 * 2. A place may also be a whole block, such as `steps[1].then`. Its steps are replaced.
 * 3. The document is not checked here: it is parsed as a whole afterwards.
 */
import type { Fault } from '../../errors.ts';
import { formatPath, type PathPart } from '../../kernel/text/path.ts';
import { isList, isObject, type Json, type JsonObject } from '../json.ts';
import type { Flow } from '../language/step.ts';

export interface Swap {
  /** As the request names it. */
  readonly key: string;
  /** The place of the replaced step. */
  readonly path: string;
  readonly steps: readonly Json[];
}

export type SwappedDocument =
  | { readonly ok: true; readonly document: JsonObject }
  | { readonly ok: false; readonly faults: readonly Fault[] };

export function swapSteps(flow: Flow, document: JsonObject, swaps: readonly Swap[]): SwappedDocument {
  const places = new Set([...flow.byPosition.values()].map(({ path }) => path));
  const parts = partsByPath(document, places);
  const faults = swaps.flatMap((swap) => faultsOf(swap, swaps, parts));
  if (faults.length > 0) return { ok: false, faults };
  const changed = swaps.reduce<Json>((value, { path, steps }) => {
    const place = parts.get(path) ?? [];
    return replaced(value, place, typeof place.at(-1) === 'number' ? asOne(steps) : steps);
  }, document);
  return { ok: true, document: changed as JsonObject };
}

function asOne(steps: readonly Json[]): Json {
  const [only, ...others] = steps;
  return only !== undefined && others.length === 0 ? only : { sequence: steps };
}

function faultsOf({ key, path }: Swap, all: readonly Swap[], parts: ReadonlyMap<string, unknown>): Fault[] {
  const at = formatPath(['swap', key]);
  if (!parts.has(path)) return [{ path: at, message: `there is no step at ${path}` }];
  const outer = all.find((other) => other.key !== key && isWithin(path, other.path));
  return outer === undefined ? [] : [{ path: at, message: `is inside of ${outer.path}, which is replaced as well` }];
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || (path.startsWith(outer) && /^[.[]/.test(path.slice(outer.length)));
}

/** The parts of these paths, as far as the document has them. */
export function partsByPath(document: Json, places: ReadonlySet<string>): Map<string, readonly PathPart[]> {
  const found = new Map<string, readonly PathPart[]>();
  const visit = (value: Json, parts: readonly PathPart[]): void => {
    // a step is a mapping, or one of these words; a block is a list
    if (value !== 'break' && value !== 'continue' && (typeof value !== 'object' || value === null)) return;
    const path = formatPath(parts);
    if (places.has(path) && !found.has(path)) found.set(path, parts);
    if (isList(value)) for (const [i, entry] of value.entries()) visit(entry, [...parts, i]);
    else if (isObject(value)) for (const [key, entry] of Object.entries(value)) visit(entry, [...parts, key]);
  };
  visit(document, []);
  return found;
}

function replaced(value: Json, [first, ...rest]: readonly PathPart[], inner: Json): Json {
  if (first === undefined) return inner;
  if (isList(value)) return value.map((entry, i) => (i === first ? replaced(entry, rest, inner) : entry));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, key === first ? replaced(entry, rest, inner) : entry]),
  );
}
