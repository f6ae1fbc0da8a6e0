/**
 * Reads the text of a flow document for `POST /api/flows` and for views of a definition. Its result is plain JSON, so that a thread
 * can do it (`documents/parser.ts`).
 */
import { type DocumentFormat, readDocument } from '../../documents/text.ts';
import type { Fault } from '../../errors.ts';
import { hasExpression } from '../expression/expression.ts';
import type { JsonObject } from '../json.ts';
import { type OutlineStep, outlineOf } from '../language/outline.ts';
import { parseFlow } from '../language/parse-flow.ts';
import type { Flow, Step } from '../language/step.ts';

/** A task that programs perform, not people. */
interface WorkTask {
  readonly path: string;
  /** The kind of work. A function that a conductor hosts is of the kind `function`, too. */
  readonly kind: string;
}

/** A flow that a step calls by a fixed name. */
interface CalledFlow {
  readonly path: string;
  readonly flow: string;
}

export interface Definition {
  readonly name: string;
  readonly description: string | null;
  readonly project: string | null;
  readonly document: JsonObject;
  readonly outline: OutlineStep;
  /** Names of the functions that a conductor must host. */
  readonly functions: readonly string[];
  readonly tasks: readonly WorkTask[];
  readonly calls: readonly CalledFlow[];
  /** By name: the place of the first task that needs it. */
  readonly pools: Readonly<Record<string, string>>;
  readonly warnings: readonly Fault[];
}

export type ReadDefinition =
  | { readonly ok: true; readonly definition: Definition }
  | { readonly ok: false; readonly faults: readonly Fault[] };

export function readDefinition(text: string, format: DocumentFormat): ReadDefinition {
  const read = readDocument(text, format);
  if (!read.ok) return read;
  const parsed = parseFlow(read.value);
  if (!parsed.ok) return parsed;
  // the parser has checked that it is plain JSON, and an object
  const document = read.value as JsonObject;
  return { ok: true, definition: definitionOf(document, parsed.flow, parsed.warnings) };
}

function definitionOf(document: JsonObject, flow: Flow, warnings: readonly Fault[]): Definition {
  const { description = null, project = null } = document;
  return {
    name: flow.name,
    description: typeof description === 'string' ? description : null,
    project: typeof project === 'string' ? project : null,
    document,
    outline: outlineOf(flow),
    functions: hostedFunctions(flow),
    tasks: [...flow.byPosition.values()].flatMap(workTask),
    calls: [...flow.byPosition.values()].flatMap(fixedCall),
    pools: poolsOf(flow),
    warnings,
  };
}

function hostedFunctions({ byPosition }: Flow): string[] {
  const names = [...byPosition.values()].flatMap((step) =>
    step.verb === 'task' && step.work.kind === 'hosted' ? [step.name] : [],
  );
  return [...new Set(names)].toSorted();
}

function workTask(step: Step): WorkTask[] {
  if (step.verb !== 'task' || step.work.kind === 'human') return [];
  if (step.work.kind === 'hosted') return [{ path: step.path, kind: 'function' }];
  return [{ path: `${step.path}.${step.work.runtime}`, kind: step.work.runtime }];
}

function fixedCall(step: Step): CalledFlow[] {
  if (step.verb !== 'call' || hasExpression(step.title) || step.title.endsWith('…')) return [];
  const flow = step.flow.evaluate({ lookup: () => null });
  return typeof flow === 'string' ? [{ path: step.path, flow }] : [];
}

function poolsOf({ byPosition }: Flow): Record<string, string> {
  const named = [...byPosition.values()].flatMap((step) =>
    step.verb === 'task' && step.pool !== null ? [[step.pool, `${step.path}.pool`] as const] : [],
  );
  return Object.fromEntries(named.toReversed());
}
