/**
 * Flows as executions use them: parsed once per process and tenant, because a version of a flow never changes.
 *
 * A document that this release cannot parse, because a newer one has stored it, is kept as a fault: its executions are refused, and all
 * others go on.
 */
import type { Pool } from 'pg';
import { isObject, type JsonObject } from '../json.ts';
import { parseFlow } from '../language/parse-flow.ts';
import type { Flow } from '../language/step.ts';
import type { Swapped } from '../interpreter/run.ts';

export interface LoadedFlow {
  readonly flowId: string;
  readonly version: number;
  readonly name: string;
  /** Whose stash and configuration its tasks use. */
  readonly projectId: string | null;
  readonly document: JsonObject;
  readonly parsed: ParsedDocument;
}

type ParsedDocument =
  | { readonly ok: true; readonly flow: Flow; readonly functions: readonly string[] }
  | { readonly ok: false; readonly detail: string };

/** Functions that conductors host. */
export function functionsOf({ parsed }: LoadedFlow): readonly string[] {
  return parsed.ok ? parsed.functions : [];
}

/** The flow with another document, which is valid. */
export function swapFlow(base: LoadedFlow, { flow, document }: Swapped): LoadedFlow {
  return { ...base, document, parsed: { ok: true, flow, functions: findFunctions(flow) } };
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
  readonly document: unknown;
};

/** Versions of flows that a process keeps parsed, per tenant. */
const maxFlows = 1_000;

type Parsed = ParsedDocument & { readonly document: JsonObject };

const caches = new WeakMap<Pool, Map<string, Parsed>>();

function cacheOf(pool: Pool) {
  const cache = caches.get(pool) ?? new Map<string, Parsed>();
  caches.set(pool, cache);
  return cache;
}

/** Which of these versions a process has not parsed yet. */
export function missingFlows(pool: Pool, keys: readonly { flow_id: string; version: number }[]): typeof keys {
  const cache = cacheOf(pool);
  const missing = new Map(keys.map((key) => [`${key.flow_id}/${key.version}`, key] as const));
  for (const key of missing.keys()) if (cache.has(key)) missing.delete(key);
  return [...missing.values()];
}

/** Without a document, the version must be in the cache. */
export function loadFlow(pool: Pool, row: FlowRow): LoadedFlow {
  const { flow_id: flowId, version, name, project_id: projectId } = row;
  const cache = cacheOf(pool);
  const key = `${flowId}/${version}`;
  const known = cache.get(key);
  const { document, ...parsed } = known ?? parseDocument(row.document);
  if (known === undefined) {
    if (cache.size >= maxFlows) cache.clear();
    cache.set(key, { document, ...parsed });
  }
  return { flowId, version, name, projectId, document, parsed };
}

/** The same flow with a document of its own. */
export function withDocument(base: LoadedFlow, document: unknown): LoadedFlow {
  const { document: own, ...parsed } = parseDocument(document);
  return { ...base, document: own, parsed };
}

function parseDocument(value: unknown): Parsed {
  const document = isObject(value) ? value : {};
  const parsed = parseFlow(value);
  if (parsed.ok) return { ok: true, flow: parsed.flow, functions: findFunctions(parsed.flow), document };
  const [{ path, message } = { path: '', message: '' }] = parsed.faults;
  const detail = `this release cannot read the document of the flow: ${path} ${message}`;
  return { ok: false, detail, document };
}
