/**
 * Applies a job document: one transaction replaces the job, or changes nothing (I11). Triggers and tasks are identified by
 * name, so their history and marks survive an edit. Triggers and tasks that the document no longer names are removed.
 *
 * A dry run does the same and rolls back, but leaves out the work on runs and tokens. An editor sends a dry run at every
 * pause in typing, so it must not make runs wait.
 */
import type { Fault } from '../errors.ts';
import { isUniqueViolation, MillraceError } from '../errors.ts';
import { type Recording, recording } from '../events/append.ts';
import { newId } from '../kernel/id.ts';
import type { Db } from '../kernel/sql.ts';
import { type Change, changesBetween } from './changes.ts';
import type { JobDefinition } from './definition.ts';
import * as queries from './queries.ts';

export interface Applied {
  readonly id: string;
  readonly version: number;
  readonly outcome: 'created' | 'changed' | 'unchanged';
  readonly dry_run: boolean;
  readonly warnings: readonly Fault[];
  readonly changes: readonly Change[];
}

export interface Application {
  readonly definition: JobDefinition;
  readonly warnings: readonly Fault[];
  readonly actor: string;
  readonly at: Date;
  readonly dryRun: boolean;
  /** Leaves out references to jobs, tasks and triggers that do not exist, instead of rejecting the document. */
  readonly leaveMissing?: boolean;
}

/** `missing`: the references that were left out. */
interface Written {
  readonly applied: Applied;
  readonly missing: readonly Fault[];
}

/** Rolls back the transaction of a dry run, and carries its result out. */
class DryRunRollback extends Error {
  readonly applied: Applied;

  constructor(applied: Applied) {
    super('dry run');
    this.applied = applied;
  }
}

export async function applyJob(db: Db, application: Application): Promise<Applied> {
  try {
    return await applyOnce(db, application).catch((error: unknown) => {
      // two applications that create the same job find no row to lock; the second try finds the other one's row
      if (isUniqueViolation(error)) return applyOnce(db, application);
      throw error;
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const { project, name } = application.definition;
    throw new MillraceError('conflict', `another job of project ${project} is called ${name}`, { cause: error });
  }
}

function applyOnce(db: Db, application: Application): Promise<Applied> {
  const writing = recording(db, application, async (tx) => {
    const { applied } = await applyWithin(tx, application);
    if (application.dryRun) throw new DryRunRollback(applied);
    return applied;
  });
  return writing.catch((error: unknown) => {
    if (error instanceof DryRunRollback) return error.applied;
    throw error;
  });
}

/** Applies in the transaction of the caller, who rolls it back after a dry run. */
export async function applyWithin(tx: Recording, application: Application): Promise<Written> {
  const { definition, at, actor, dryRun, leaveMissing = false } = application;
  if (definition.foreignReferences.length > 0) await queries.lockReferences(tx);
  const before = await readPrevious(tx, definition);
  const changes = changesBetween(before.document, definition.document);
  const unchanged = before.row !== undefined && before.row.deleted_at === null && changes.length === 0;
  const job = {
    id: before.row?.id ?? definition.uuid ?? newId(),
    projectId: before.projectId,
    definition,
    paused: definition.paused ?? before.row?.paused ?? false,
    version: (before.row?.version ?? 0) + (unchanged ? 0 : 1),
    at,
  };
  const writesNothing = unchanged && job.paused === before.row?.paused;
  if (!writesNothing) await queries.writeJob(tx, job);
  if (!unchanged) await queries.writeVersion(tx, job, actor);
  const how = { actor, dryRun, leaveMissing, wasPaused: before.row?.paused ?? false };
  const { warnings, missing } = await writeParts(tx, job, how);
  const outcome = before.row === undefined ? 'created' : unchanged ? 'unchanged' : 'changed';
  if (!writesNothing) recordEvents(tx, job, { outcome, wasPaused: before.row?.paused ?? false });
  const all = [...application.warnings, ...warnings];
  const applied = { id: job.id, version: job.version, outcome, dry_run: dryRun, warnings: all, changes } as const;
  return { applied, missing };
}

interface Previous {
  readonly projectId: string;
  readonly row: queries.JobRow | undefined;
  readonly document: unknown;
}

async function readPrevious(tx: Db, definition: JobDefinition): Promise<Previous> {
  const projectId = await queries.findProjectId(tx, definition.project);
  if (projectId === undefined) {
    const fault = { path: 'project', message: `project not found: ${definition.project}` };
    throw new MillraceError('bad_reference', fault.message, { faults: [fault] });
  }
  const row = await queries.lockJob(tx, { id: definition.uuid, projectId, name: definition.name });
  if (row !== undefined && row.deleted_at === null && row.project_id !== projectId) {
    throw new MillraceError('conflict', `the job ${row.id} belongs to another project`);
  }
  const document =
    row && row.deleted_at === null ? await queries.readStoredDocument(tx, row.id, row.version) : undefined;
  return { projectId, row, document };
}

interface Circumstances {
  readonly actor: string;
  readonly dryRun: boolean;
  readonly leaveMissing: boolean;
  readonly wasPaused: boolean;
}

interface WrittenParts {
  /** About jobs that depended on removed parts, and about new pools. */
  readonly warnings: readonly Fault[];
  readonly missing: readonly Fault[];
}

/** Writes triggers, tasks and edges. */
async function writeParts(tx: Db, job: queries.JobWrite, how: Circumstances): Promise<WrittenParts> {
  const { definition, at } = job;
  await queries.lockTriggers(tx, job.id);
  const triggers = await queries.writeTriggers(tx, job.id, definition.triggers);
  const before = await queries.readThresholds(tx, job.id);
  const tasks = await queries.writeTasks(tx, job, definition.tasks);
  const lowered = definition.tasks.filter((task) => task.threshold < (before.get(task.name) ?? 0));
  await queries.removeTriggers(tx, job.id, [...triggers.values()], at);
  const gone = await queries.findOtherTasks(tx, job.id, [...tasks.values()]);
  const lost = await queries.findOrphanedDependents(tx, job.id, gone);
  await queries.dropEdges(tx, job.id);
  const { foreign, missing } = await resolveForeignReferences(tx, definition, how.leaveMissing);
  await queries.writeEdges(tx, listEdges(definition, { triggers, tasks, foreign }));
  const pools = how.dryRun
    ? await queries.findMissingPools(tx, definition)
    : await workOnRuns(tx, job, { ...how, tasks, gone, lowered: lowered.flatMap(({ name }) => tasks.get(name) ?? []) });
  return { warnings: [...lost.map(warnOfLostDependent), ...warnOfNewPools(definition, pools)], missing };
}

interface Affected extends Circumstances {
  readonly tasks: Ids;
  readonly gone: readonly string[];
  readonly lowered: readonly string[];
}

/** Applies the edit to runs and tokens that are queued or wait. Returns the names of pools that it created. */
async function workOnRuns(tx: Db, job: queries.JobWrite, affected: Affected): Promise<string[]> {
  const { actor, wasPaused, tasks, gone, lowered } = affected;
  const { definition, at } = job;
  const limited = hasLimits(definition) || (await queries.isLimited(tx, job.id));
  if (limited) await queries.lockRuns(tx, job.id);
  if (lowered.length > 0) await queries.lowerThresholds(tx, lowered, at);
  const pools = limited ? await queries.setLimits(tx, job, tasks) : [];
  if (job.paused && !wasPaused) await queries.parkRuns(tx, [...tasks.values()], at);
  if (gone.length > 0) await queries.retireTasks(tx, gone, { actor, at });
  return pools;
}

function hasLimits({ maxActiveInstants, tasks }: JobDefinition): boolean {
  return maxActiveInstants !== null || tasks.some((task) => task.maxRunning !== null || task.pool !== null);
}

function warnOfLostDependent(l: { project: string; job: string; task: string; parent: string }): Fault {
  return {
    path: '',
    message: `${l.project}/${l.job}/task/${l.task} depended on ${l.parent}, which is no longer here`,
  };
}

/** One warning per pool, at the first task that names it. */
function warnOfNewPools({ tasks }: JobDefinition, pools: readonly string[]): Fault[] {
  const first = new Map(tasks.map((task, i) => [task.pool, i] as const).toReversed());
  return pools.map((pool) => ({
    path: `tasks[${first.get(pool)}].pool`,
    message: `the pool ${pool} is new and has one place; \`millrace pool set\` gives it more`,
  }));
}

type Ids = ReadonlyMap<string, string>;

const keyOf = (reference: queries.Foreign): string =>
  JSON.stringify([reference.project, reference.job, reference.kind, reference.name]);

interface Resolved {
  readonly foreign: Ids;
  readonly missing: readonly Fault[];
}

/** Resolves the references to other jobs. Each reference that leads nowhere is a fault of its own. */
async function resolveForeignReferences(tx: Db, definition: JobDefinition, leaveMissing: boolean): Promise<Resolved> {
  const wanted = definition.foreignReferences;
  const ids = await queries.resolveForeign(
    tx,
    wanted.map(({ reference }) => reference),
  );
  const missing = wanted.flatMap(({ path, reference: r }, i) =>
    ids[i] ? [] : [{ path, message: `${r.kind} not found: ${r.project}/${r.job}/${r.kind}/${r.name}` }],
  );
  if (missing.length > 0 && !leaveMissing) {
    throw new MillraceError('bad_reference', missing.map((f) => `${f.path}: ${f.message}`).join('; '), {
      faults: missing,
    });
  }
  const found = ids.flatMap((id) => id ?? []);
  // another application removed one of them since; the next attempt reports it as missing
  if (!(await queries.lockForeign(tx, found))) return resolveForeignReferences(tx, definition, leaveMissing);
  const foreign = new Map(wanted.flatMap(({ reference }, i) => (ids[i] ? [[keyOf(reference), ids[i]] as const] : [])));
  return { foreign, missing };
}

/** Without the edges from other jobs that were left out. */
function listEdges(definition: JobDefinition, ids: { triggers: Ids; tasks: Ids; foreign: Ids }): queries.EdgeWrite[] {
  return definition.tasks.flatMap((task) =>
    task.edges.flatMap(({ kind, parent, offsetMs }) => {
      const local = parent.kind === 'task' ? ids.tasks : ids.triggers;
      const parentId = parent.local ? local.get(parent.name) : ids.foreign.get(keyOf(parent));
      if (parentId === undefined && !parent.local) return [];
      const childId = ids.tasks.get(task.name);
      if (parentId === undefined || childId === undefined) throw new Error(`unresolved edge into ${task.name}`);
      return [{ parentId, childId, kind, offsetMs }];
    }),
  );
}

function recordEvents(
  tx: Recording,
  job: queries.JobWrite,
  what: { outcome: Applied['outcome']; wasPaused: boolean },
): void {
  const { project, name } = job.definition;
  const body = { project, name, version: job.version, paused: job.paused };
  if (what.outcome !== 'unchanged') tx.record('millrace_jobs', { type: `job.${what.outcome}`, subject: job.id, body });
  if (what.outcome !== 'created' && what.wasPaused !== job.paused) {
    tx.record('millrace_jobs', { type: job.paused ? 'job.paused' : 'job.unpaused', subject: job.id, body });
  }
}
