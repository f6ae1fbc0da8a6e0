/**
 * `millrace apply`: creates or replaces the jobs on the server from files.
 *
 * 1. Every file is validated here. If one has a fault, nothing is sent.
 * 2. Projects must exist, or are created with `--create-project`.
 * 3. Jobs are sent one by one, those that others refer to first. A job that refers to a missing job is retried as long as
 *    other jobs succeed.
 * 4. With `--prune`, jobs that no file names are deleted last, and only if every job was applied.
 */
import { MillraceError } from '../../../errors.ts';
import { CallFailed } from '../../../http/client.ts';
import { type Applied, applyReport, type Report, type Result } from './apply-report.ts';
import { hasPart, type JobDocument, jobKey, type ReadJobs, readJobs } from './documents.ts';
import { Ended, exitCodes, UsageError } from '../../session/exit.ts';
import { inOrder } from './order.ts';
import { count } from '../../print/output.ts';
import { listProjectJobs, listProjects } from '../../session/pages.ts';
import { checkInstant } from '../../session/references.ts';
import type { Server } from '../../session/server.ts';
import { canAsk, type Session } from '../../session/session.ts';
import { oneLine } from '../../print/width.ts';

export interface ApplyOptions {
  readonly file: readonly string[];
  readonly dryRun: boolean;
  /** List the instants to be caught up after this one. */
  readonly after?: string | undefined;
  readonly createProject: boolean;
  readonly prune: boolean;
  readonly yes: boolean;
}

/** The names of the projects in question, with the ids of those that exist. */
type Projects = ReadonlyMap<string, string | undefined>;

export async function apply(session: Session, options: ApplyOptions): Promise<void> {
  if (options.prune && !options.yes && !options.dryRun && !canAsk(session.io)) {
    throw new UsageError('--prune deletes jobs: add --yes to confirm, or preview with --dry-run');
  }
  if (options.after !== undefined && !options.dryRun) throw new UsageError('--after needs --dry-run');
  const after = options.after === undefined ? undefined : checkInstant(options.after);
  const { documents } = rejectFaults(await readJobs(session.io, options.file));
  const server = await session.connect();
  const projects = await prepareProjects(server, documents, options);
  const report = await applyJobs(session, server, documents, { projects, dryRun: options.dryRun, after });
  const failed = report.jobs.some((result) => result.outcome === 'failed');
  const surplus = options.prune && !failed ? await findSurplus(server, projects, report.jobs) : [];
  const pruned = { ...report, pruned: surplus };
  if (!options.dryRun) await prune(session, server, pruned, options.yes);
  applyReport(session.out, pruned);
  if (failed) throw new Ended(exitCodes.failed);
}

/** If it fails in the middle, it still reports what was done so far. */
async function applyJobs(
  session: Session,
  server: Server,
  documents: readonly JobDocument[],
  by: Circumstances,
): Promise<Report> {
  const results: Results = new Map();
  const report = (): Report => ({
    dry_run: by.dryRun,
    projects_created: [...by.projects].flatMap(([name, id]) => (id === undefined ? [name] : [])),
    jobs: documents.flatMap((document) => results.get(document) ?? []),
    pruned: [],
  });
  try {
    await applyAll(server, documents, by, results);
  } catch (error) {
    applyReport(session.out, report());
    throw error;
  }
  return report();
}

function rejectFaults(read: ReadJobs): ReadJobs {
  if (read.faults.length === 0) return read;
  const faults = read.faults.map(({ source, path, message }) => ({
    path: path === '' ? source : `${source}:${path}`,
    message,
  }));
  throw new MillraceError('bad_document', `${count(faults.length, 'fault')}; nothing was applied`, { faults });
}

async function prepareProjects(
  server: Server,
  documents: readonly JobDocument[],
  options: ApplyOptions,
): Promise<Projects> {
  const existing = new Map((await listProjects(server)).map(({ name, id }) => [name, id]));
  const wanted = new Map(documents.map(({ job }) => [job.project, existing.get(job.project)]));
  const missing = [...wanted].flatMap(([name, id]) => (id === undefined ? [name] : []));
  if (missing.length > 0 && !options.createProject) {
    const hint = 'create it with `millrace project create`, or add --create-project';
    throw new MillraceError('not_found', `project not found: ${missing.join(', ')}; ${hint}. Nothing was applied`);
  }
  if (!options.dryRun) for (const name of missing) await server.tenant('POST /api/projects', { body: { name } });
  return wanted;
}

type Results = Map<JobDocument, Result>;

interface Circumstances {
  readonly projects: Projects;
  readonly dryRun: boolean;
  readonly after: string | undefined;
}

/** Retries jobs with unresolved references, until a round makes no progress. */
async function applyAll(
  server: Server,
  documents: readonly JobDocument[],
  by: Circumstances,
  results: Results,
): Promise<void> {
  let pending = inOrder(documents);
  for (let before = Number.POSITIVE_INFINITY; pending.length > 0 && pending.length < before; ) {
    before = pending.length;
    const refused: JobDocument[] = [];
    for (const document of pending) {
      const answer = await applyOne(server, document, by);
      const result =
        by.dryRun && isReferenceFault(answer) ? acceptFutureReferences(answer, document, documents) : answer;
      results.set(document, result);
      if (isReferenceFault(result)) refused.push(document);
    }
    pending = refused;
  }
}

function isReferenceFault(result: Result): boolean {
  return result.outcome === 'failed' && result.error.code === 'bad_reference';
}

async function applyOne(server: Server, document: JobDocument, by: Circumstances): Promise<Result> {
  const { source: file, job } = document;
  const about = { file, project: job.project, name: job.name };
  // the server cannot compare, because the project would be created first
  if (by.dryRun && by.projects.get(job.project) === undefined) return { ...about, ...presumed };
  try {
    const answer: Applied = await server.tenant('PUT /api/jobs', {
      query: { dry_run: by.dryRun ? 'true' : 'false', after: by.after },
      body: JSON.stringify(job.document),
    });
    return { ...about, ...answer };
  } catch (error) {
    if (!(error instanceof CallFailed) || [401, 403].includes(error.status)) throw error;
    const { code, faults } = error.problem ?? {};
    return {
      ...about,
      outcome: 'failed',
      error: { code: code ?? 'internal', message: error.message, faults: faults ?? [] },
    };
  }
}

const presumed = {
  outcome: 'created',
  id: null,
  version: 1,
  dry_run: true,
  warnings: [],
  changes: [],
} satisfies Partial<Result>;

/** In a dry run, a reference to a job that this apply would create is no fault. */
function acceptFutureReferences(result: Result, document: JobDocument, all: readonly JobDocument[]): Result {
  if (result.outcome !== 'failed' || result.error.faults.length === 0) return result;
  const jobs = new Map(all.map(({ job }) => [jobKey(job), job]));
  const met = result.error.faults.every((fault) => {
    const reference = document.job.foreignReferences.find(({ path }) => path === fault.path)?.reference;
    const target = reference && jobs.get(`${reference.project}/${reference.job}`);
    return reference !== undefined && target !== undefined && hasPart(target, reference);
  });
  const { file, project, name } = result;
  return met ? { ...presumed, file, project, name, outcome: 'follows', version: null } : result;
}

/** Finds jobs of these projects that no document describes. They are compared by id, so a renamed job is kept. */
async function findSurplus(server: Server, projects: Projects, results: readonly Result[]): Promise<Report['pruned']> {
  const kept = new Set(results.flatMap((result) => (result.outcome === 'failed' ? [] : [result.id, jobKey(result)])));
  const surplus: { id: string; project: string; name: string }[] = [];
  for (const [project, id] of projects) {
    if (id === undefined) continue;
    for (const { job_id, name } of await listProjectJobs(server, id)) {
      if (!kept.has(job_id) && !kept.has(`${project}/${name}`)) surplus.push({ id: job_id, project, name });
    }
  }
  return surplus;
}

async function prune(session: Session, server: Server, report: Report, yes: boolean): Promise<void> {
  if (report.pruned.length === 0) return;
  if (!yes) for (const job of report.pruned) session.out.note(`  ${oneLine(jobKey(job))}`);
  try {
    await session.confirm(`Delete ${count(report.pruned.length, 'job')} that no file names?`, yes);
  } catch (error) {
    applyReport(session.out, { ...report, pruned: [] });
    throw error;
  }
  for (const { id } of report.pruned) await server.tenant('DELETE /api/jobs/{id}', { params: { id } });
}
