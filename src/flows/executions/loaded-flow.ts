/**
 * Flows as executions use them. A version of a flow never changes, so a process keeps its document, and what it has parsed.
 *
 * 1. A document that this release cannot parse, because a newer one has stored it, is kept as a fault: its executions are refused, and
 *    all others go on.
 * 2. Both are bounded by the characters of the documents: a parsed one takes up to a hundred bytes for each. An execution in memory has
 *    its document, and asks for the parsed one, which is parsed again if it was dropped meanwhile.
 */
import type { Pool } from 'pg';
import { isObject, type JsonObject, sizeOf } from '../json.ts';
import { parseFlow } from '../language/parse-flow.ts';
import type { Flow } from '../language/step.ts';
import type { Swapped } from '../interpreter/run.ts';
import { Recent } from './recent.ts';

export interface LoadedFlow {
  readonly flowId: string;
  readonly version: number;
  readonly name: string;
  /** Whose stash and configuration its tasks use. */
  readonly projectId: string | null;
  readonly document: JsonObject;
  readonly parsed: ParsedDocument;
  /** Functions that conductors host. */
  readonly functions: readonly string[];
}

type ParsedDocument = { readonly ok: true; readonly flow: Flow } | { readonly ok: false; readonly detail: string };

const limits = {
  /** Of parsed documents, in this process: about 200 MB. */
  parsedChars: 2 * 1024 * 1024,
  /** Of documents of one tenant. */
  documentChars: 2 * 1024 * 1024,
} as const;

const parsedFlows = new Recent<JsonObject, ParsedDocument>(limits.parsedChars);

/** Of each document, as long as it is in memory: what was parsed is dropped sooner. */
const functions = new WeakMap<JsonObject, readonly string[]>();

type Base = Omit<LoadedFlow, 'document' | 'parsed' | 'functions'>;

function flowWith({ flowId, version, name, projectId }: Base, document: JsonObject): LoadedFlow {
  return {
    flowId,
    version,
    name,
    projectId,
    document,
    get parsed() {
      return parsedOf(document);
    },
    get functions() {
      return functionsOf(document);
    },
  };
}

function parsedOf(document: JsonObject): ParsedDocument {
  return parsedFlows.get(document) ?? parsedFlows.keep(document, parseDocument(document), charsOf(document));
}

function functionsOf(document: JsonObject): readonly string[] {
  const known = functions.get(document);
  if (known !== undefined) return known;
  const parsed = parsedOf(document);
  const found = parsed.ok ? findFunctions(parsed.flow) : [];
  functions.set(document, found);
  return found;
}

/** The flow with another document, which is valid. */
export function swapFlow(base: LoadedFlow, { flow, document }: Swapped): LoadedFlow {
  parsedFlows.keep(document, { ok: true, flow }, charsOf(document));
  return flowWith(base, document);
}

/** The same flow with a document of its own. */
export function withDocument(base: LoadedFlow, document: unknown): LoadedFlow {
  return flowWith(base, isObject(document) ? document : {});
}

/** The same flow, whose executions cannot go on here. */
export function withFault({ flowId, version, name, projectId, document }: LoadedFlow, detail: string): LoadedFlow {
  return { flowId, version, name, projectId, document, parsed: { ok: false, detail }, functions: [] };
}

function findFunctions({ byPosition }: Flow): readonly string[] {
  const names = new Set<string>();
  for (const step of byPosition.values()) if (step.verb === 'task' && step.work.kind === 'hosted') names.add(step.name);
  return [...names];
}

export type FlowRow = {
  readonly flow_id: string;
  readonly version: number;
  readonly name: string;
  readonly project_id: string | null;
};

export function loadFlow(row: FlowRow, document: unknown): LoadedFlow {
  const { flow_id: flowId, version, name, project_id: projectId } = row;
  return flowWith({ flowId, version, name, projectId }, isObject(document) ? document : {});
}

const documents = new WeakMap<Pool, Recent<string, JsonObject>>();

/** Documents of versions of flows that this process has read. */
export function documentsOf(pool: Pool): Recent<string, JsonObject> {
  const known = documents.get(pool) ?? new Recent<string, JsonObject>(limits.documentChars);
  documents.set(pool, known);
  return known;
}

const lengths = new WeakMap<JsonObject, number>();

export function charsOf(document: JsonObject): number {
  const known = lengths.get(document);
  if (known !== undefined) return known;
  const chars = sizeOf(document, Number.POSITIVE_INFINITY);
  lengths.set(document, chars);
  return chars;
}

/** Shorter documents are few, or shared by their executions. */
const longDocumentChars = 16 * 1024;

/** What an execution in memory takes for its document, about. */
export function documentBytes({ document }: LoadedFlow): number {
  const chars = charsOf(document);
  return chars > longDocumentChars ? 4 * chars : 0;
}

function parseDocument(document: JsonObject): ParsedDocument {
  const parsed = parseFlow(document);
  if (parsed.ok) return { ok: true, flow: parsed.flow };
  const [{ path, message } = { path: '', message: '' }] = parsed.faults;
  return { ok: false, detail: `this release cannot read the document of the flow: ${path} ${message}` };
}
