/**
 * Finds the place of a fault in the text. The server names faults by path (`tasks[2].depends[0]`, `env["A B"]`); the parsed
 * YAML knows the position of each value. A missing field is reported at the mapping that should contain it.
 */
import { type Document, isMap, isNode, isScalar, isSeq, type Node, type Pair, parseDocument } from 'yaml';

interface Place {
  readonly from: number;
  readonly to: number;
}

export interface PlacedFault extends Place {
  /** Line number, from 1. */
  readonly line: number;
  /** Empty for a fault of the text itself. */
  readonly path: string;
  readonly message: string;
}

type Step = string | number;

const steps = /\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.[\]]+)/gy;

export function parsePath(path: string): readonly Step[] {
  return [...path.matchAll(steps)].map(([, index, quoted, plain = '']): Step => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? plain : (JSON.parse(quoted) as string);
  });
}

/** Parses the text and returns its syntax errors as faults. */
export function readText(text: string): { readonly document: Document; readonly faults: readonly PlacedFault[] } {
  const document = parseDocument(text, { prettyErrors: false });
  const faults = document.errors.map(({ pos: [from], message }) =>
    makeFault(text, { from, to: from + 1 }, '', message),
  );
  return { document, faults };
}

export function placeFault(text: string, document: Document, fault: { path: string; message: string }): PlacedFault {
  return makeFault(text, placeOf(document, parsePath(fault.path)), fault.path, fault.message);
}

/** Cuts the place at the end of its first line, because underlining a whole list does not help. */
function makeFault(text: string, { from, to }: Place, path: string, message: string): PlacedFault {
  const begin = Math.min(Math.max(0, from), text.length);
  const newline = text.indexOf('\n', begin);
  const end = Math.max(begin, Math.min(to, newline === -1 ? text.length : newline));
  const line = text.slice(0, begin).split('\n').length;
  return { from: begin, to: end, line, path, message };
}

function placeOf(document: Document, path: readonly Step[]): Place {
  let place: Place = { from: 0, to: 1 };
  let node: unknown = document.contents;
  for (const step of path) {
    const found = stepInto(node, step);
    if (found === undefined) return place;
    ({ place, node } = found);
  }
  return place;
}

function stepInto(node: unknown, step: Step): { place: Place; node: unknown } | undefined {
  if (isSeq(node) && typeof step === 'number') {
    const item: unknown = node.items[step];
    return isNode(item) ? { place: rangeOf(item), node: item } : undefined;
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find(({ key }) => isScalar(key) && isNamed(String(key.value), String(step)));
  return pair === undefined ? undefined : { place: placeOfPair(pair), node: pair.value };
}

/** Long keys are shortened in paths. */
function isNamed(key: string, step: string): boolean {
  return key === step || (step.endsWith('…') && key.startsWith(step.slice(0, -1)));
}

/** A plain value is marked itself; a list or mapping is marked at its name. */
function placeOfPair({ key, value }: Pair): Place {
  const isWritten =
    isScalar(value) && value.range !== undefined && value.range !== null && value.range[0] < value.range[1];
  return rangeOf(isWritten ? value : (key as Node));
}

function rangeOf(node: Node): Place {
  const [from, to] = node.range ?? [0, 1, 1];
  return { from, to };
}
