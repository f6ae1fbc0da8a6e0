/**
 * Applies a flow document: it becomes the newest version of the flow of its name, in one transaction.
 *
 * 1. Executions keep their version. New ones follow the newest.
 * 2. A document that is equal to the newest version changes nothing.
 * 3. A dry run checks everything that an application checks, and writes nothing.
 * 4. A flow of the name of a deleted one is a new flow.
 */
import { type Fault, isUniqueViolation, MillraceError } from '../../errors.ts';
import { recording } from '../../events/append.ts';
import { newId } from '../../kernel/id.ts';
import type { Db } from '../../kernel/sql.ts';
import * as queries from './queries.ts';
import type { Definition } from './read-definition.ts';

export interface FlowApplication {
  readonly definition: Definition;
  readonly actor: string;
  readonly at: Date;
  readonly dryRun: boolean;
}

export interface AppliedFlow {
  readonly name: string;
  /** The version that it has, or would have. */
  readonly version: number;
  readonly changed: boolean;
  readonly warnings: readonly Fault[];
}

export async function applyFlow(db: Db, application: FlowApplication): Promise<AppliedFlow> {
  return applyOnce(db, application).catch((error: unknown) => {
    // of two applications that create the same flow, neither finds a row to lock; the second try finds the other one's row
    if (isUniqueViolation(error)) return applyOnce(db, application);
    throw error;
  });
}

function applyOnce(db: Db, { definition, actor, at, dryRun }: FlowApplication): Promise<AppliedFlow> {
  const { name, description } = definition;
  return recording(db, { actor, at }, async (tx) => {
    const projectId = await requireProject(tx, definition.project);
    const warnings = [...definition.warnings, ...(await warnOfUnknown(tx, definition))];
    const before = await queries.lockFlow(tx, name);
    const document = JSON.stringify(definition.document);
    const stored = before && (await queries.readDocumentText(tx, before.id, before.version));
    if (before !== undefined && stored === document) return { name, version: before.version, changed: false, warnings };
    const version = (before?.version ?? 0) + 1;
    const applied = { name, version, changed: true, warnings };
    if (dryRun) return applied;
    const id = before?.id ?? newId();
    await queries.writeVersion(tx, { id, name, description, projectId, version, document, actor, at });
    tx.record('millrace_flows', { type: 'flow.applied', subject: id, body: { flow: name, name, version } });
    return applied;
  });
}

async function requireProject(tx: Db, project: string | null): Promise<string | null> {
  if (project === null) return null;
  const id = await queries.findProjectId(tx, project);
  if (id !== undefined) return id;
  const fault = { path: 'project', message: `project not found: ${project}` };
  throw new MillraceError('bad_reference', `${fault.path}: ${fault.message}`, { faults: [fault] });
}

/** Warns of flows and pools that do not exist. They may follow, so this is no fault. */
async function warnOfUnknown(tx: Db, { name, calls, pools }: Definition): Promise<Fault[]> {
  const called = [...new Set(calls.map(({ flow }) => flow))].filter((flow) => flow !== name);
  const flows = new Set(called.length === 0 ? [] : await queries.findUnknownFlows(tx, called));
  const names = Object.keys(pools);
  const missing = new Set(names.length === 0 ? [] : await queries.findUnknownPools(tx, names));
  return [
    ...calls
      .filter(({ flow }) => flows.has(flow))
      .map(({ path, flow }) => ({ path, message: `calls the flow ${flow}, which is not applied yet` })),
    ...Object.entries(pools)
      .filter(([pool]) => missing.has(pool))
      .map(([pool, path]) => ({
        path,
        message: `the pool ${pool} is new: its first run creates it with one place; \`millrace pool set\` gives it more`,
      })),
  ];
}

/** Deletes a flow: nothing can be launched by its name. Its executions go on. Undefined: there is no such flow. */
export function deleteFlow(
  db: Db,
  name: string,
  { actor, at }: Pick<FlowApplication, 'actor' | 'at'>,
): Promise<{ readonly version: number } | undefined> {
  return recording(db, { actor, at }, async (tx) => {
    const flow = await queries.lockFlow(tx, name);
    if (flow === undefined) return undefined;
    await queries.markDeleted(tx, flow.id, at);
    const { version } = flow;
    tx.record('millrace_flows', { type: 'flow.deleted', subject: flow.id, body: { flow: name, name, version } });
    return { version };
  });
}
