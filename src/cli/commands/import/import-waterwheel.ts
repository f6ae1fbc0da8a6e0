/**
 * `millrace import waterwheel`: copies an installation of Waterwheel into a tenant.
 *
 * 1. Everything is read in one snapshot of Waterwheel's database, which is never written.
 * 2. Every fault is found first: the documents are parsed here, and then a dry run asks the server about each job. With a fault,
 *    nothing is imported.
 * 3. Projects, then jobs, then the stash. A project and a job are one transaction each. All jobs are paused.
 * 4. With `--start`, the jobs are started last, once nothing fires in Waterwheel any more.
 *
 * Each step can be repeated: what is here already stays as it is. So an import that was interrupted is simply run again.
 */
import { maxTokens } from '../../../api/imports/endpoints.ts';
import { type Fault, MillraceError } from '../../../errors.ts';
import { openSource } from '../../../waterwheel/source.ts';
import { makeProgressPrinter } from '../backfills/follow-backfill.ts';
import { count } from '../../print/output.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import type { Session } from '../../session/session.ts';
import { importJobs, rejectFaults } from './import-jobs.ts';
import { type ImportReport, type ProjectResult, printReport } from './import-report.ts';
import { importStash } from './import-stash.ts';
import type { ImportOptions, ImportWork } from './import-work.ts';
import { countTokens, type JobTokens, planImport } from './plan.ts';
import { startJobs } from './start-jobs.ts';

/** Schedulers of Waterwheel send a heartbeat every 20 seconds; one that has sent none for this time counts as stopped. */
const schedulerGoneSeconds = 60;

export async function importWaterwheel(session: Session, options: ImportOptions): Promise<void> {
  const source = await openSource(options.db);
  try {
    const [projects, jobs, stash] = [await source.projects(), await source.jobs(), await source.stash()];
    const plan = planImport({ projects, jobs, stash }, options.project);
    rejectFaults(plan.faults);
    const server = await session.connect();
    const work: ImportWork = { server, source, plan, options, progress: makeProgressPrinter(session) };
    const report = await runImport(work);
    printReport(session.out, report);
    if (report.conflicts > 0) throw new Ended(exitCodes.failed);
  } finally {
    await source.close();
  }
}

async function runImport(work: ImportWork): Promise<ImportReport> {
  const { plan, options, source } = work;
  const seconds = await source.schedulerSeconds();
  const tokens = await readTokens(work);
  const underWay = [...tokens.values()].flatMap((each) => each.underWay);
  const isRunning = seconds !== null && seconds < schedulerGoneSeconds && plan.jobs.some(({ paused }) => !paused);
  if (options.start) requireStandstill({ isRunning, underWay, options });
  const rehearsed = await importJobs(work, tokens, { dryRun: true });
  rejectFaults(rehearsed.faults);
  const { dryRun } = options;
  const projects = await importProjects(work);
  const { jobs } = dryRun ? rehearsed : await importJobs(work, tokens, { dryRun: false });
  const stash = await importStash(work, { projects, jobs });
  const retries = options.start ? await source.retries() : [];
  const start = options.start ? await startJobs(work, jobs, retries) : null;
  const stashConflicts = stash.conflicts.length;
  const failed = [...projects, ...jobs].filter(({ outcome }) => outcome === 'conflict').length;
  return {
    dry_run: dryRun,
    projects,
    jobs,
    stash,
    start,
    under_way: underWay.map(({ key, task, instant }) => ({ job: key, task, instant: instant.toISOString() })),
    waterwheel: { running: isRunning, scheduler_seen_seconds_ago: seconds },
    conflicts: failed + stashConflicts,
  };
}

interface Standing {
  readonly isRunning: boolean;
  readonly underWay: JobTokens['underWay'];
  readonly options: ImportOptions;
}

const maxListed = 20;

/** Nothing may fire in both systems, and no result of a run may come later. */
function requireStandstill({ isRunning, underWay, options }: Standing): void {
  if (isRunning) {
    const advice = 'pause all its jobs, or stop its schedulers and wait a minute';
    throw new MillraceError('conflict', `Waterwheel still fires, so nothing was imported or started; ${advice}`);
  }
  if (underWay.length === 0 || options.underWay !== undefined) return;
  const faults = underWay
    .slice(0, maxListed)
    .map(({ key, task, instant }) => ({ path: `${key}/task/${task}`, message: `runs for ${instant.toISOString()}` }));
  const advice =
    'wait until they end, or add --under-way again (they run once more here) or --under-way leave (they count as over)';
  const detail = `${count(underWay.length, 'run')} under way in Waterwheel, so nothing was imported or started; ${advice}`;
  throw new MillraceError('conflict', detail, { faults });
}

async function readTokens({ plan, source, options }: ImportWork): Promise<Map<string, JobTokens>> {
  const tokens = new Map<string, JobTokens>();
  const faults: Fault[] = [];
  for (const job of plan.jobs) {
    const counted = countTokens(job, await source.tokens(job.id), options.start && options.underWay === 'again');
    tokens.set(job.id, counted);
    if (counted.tokens.length <= maxTokens) continue;
    const message = `has ${counted.tokens.length} waiting tokens, at most ${maxTokens} are imported; clear old instants in Waterwheel`;
    faults.push({ path: job.key, message });
  }
  rejectFaults(faults);
  return tokens;
}

async function importProjects({ plan, server, options }: ImportWork): Promise<ProjectResult[]> {
  const results: ProjectResult[] = [];
  for (const { id, name, description, config } of plan.projects) {
    const project = { id, name, description, ...(config !== null && { config }) };
    const body = { project, dry_run: options.dryRun, overwrite: options.overwrite };
    results.push({ name, ...(await server.tenant('POST /api/imports/projects', { body })) });
  }
  return results;
}
