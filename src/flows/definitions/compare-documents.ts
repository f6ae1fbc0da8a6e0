/** The steps in which two documents differ, by their places: for the preview of a swap. Pure. */
import { isRecord, type PathPart, valueAt } from '../../kernel/text/path.ts';
import type { Json } from '../json.ts';
import type { Flow } from '../language/step.ts';
import { partsByPath } from './swap-steps.ts';

export interface StepChange {
  readonly path: string;
  /** The step in one line; null: there is none at this place. */
  readonly from: string | null;
  readonly to: string | null;
}

export interface PlacedFlow {
  readonly flow: Flow;
  readonly document: Json;
}

/** Maximum changes of one answer. */
const maxChanges = 1_000;

/** By place. Blocks are left out: their steps are compared. */
export function compareDocuments(before: PlacedFlow, after: PlacedFlow): StepChange[] {
  const [old, now] = [describeSteps(before), describeSteps(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])];
  return paths
    .toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .filter((path) => old.get(path)?.own !== now.get(path)?.own)
    .slice(0, maxChanges)
    .map((path) => {
      const [from, to] = [old.get(path), now.get(path)];
      const isSameLine = from?.line === to?.line;
      return { path, from: lineOf(from, isSameLine), to: lineOf(to, isSameLine) };
    });
}

interface Described {
  /** The verb and the title. */
  readonly line: string;
  /** All that the step says itself, as JSON, without the steps inside it. */
  readonly own: string;
}

const maxOwnChars = 500;

/** Two steps of the same line are told apart by what they say. */
function lineOf(step: Described | undefined, isSameLine: boolean): string | null {
  if (step === undefined) return null;
  if (!isSameLine) return step.line;
  return step.own.length <= maxOwnChars ? step.own : `${step.own.slice(0, maxOwnChars)}…`;
}

function describeSteps({ flow, document }: PlacedFlow): Map<string, Described> {
  const steps = [...flow.byPosition.values()];
  const parts = partsByPath(document, new Set(steps.map(({ path }) => path)));
  const described = new Map<string, Described>();
  for (const step of steps) {
    const own = ownText(document, parts.get(step.path));
    if (own !== undefined) described.set(step.path, { line: `${step.verb} ${step.title}`.trim(), own });
  }
  return described;
}

/** The fields of a step that hold other steps. `cases` holds them one level deeper. */
const blocks: ReadonlySet<string> = new Set(
  'sequence parallel loop then else do cases on_error on_cancel on_timeout undo'.split(' '),
);

/** Undefined: the place is a block. */
function ownText(document: Json, parts: readonly PathPart[] | undefined): string | undefined {
  const value = parts === undefined ? undefined : valueAt(document, parts);
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return undefined;
  const own = Object.entries(value).map(([key, entry]) => [key, blocks.has(key) ? shapeOf(entry) : entry] as const);
  return JSON.stringify(Object.fromEntries(own));
}

/** The steps of a block are compared by themselves. Of `cases`, their names count. */
function shapeOf(entry: unknown): unknown {
  return isRecord(entry) ? Object.keys(entry) : 'steps';
}
