/**
 * Plans an import from Waterwheel: what its rows become here, and why some of them cannot be imported. Reads no database. All
 * faults are found before anything is sent.
 */
import type { Fault } from '../../../errors.ts';
import type { JobDefinition } from '../../../jobs/definition.ts';
import { parseJob } from '../../../jobs/document/parse-job.ts';
import { isRecord } from '../../../kernel/text/path.ts';
import type { SourceJob, SourceProject, SourceStash, SourceToken, SourceTrigger } from '../../../waterwheel/source.ts';
import { jobKey } from '../jobs/documents.ts';

export interface PlannedJob {
  readonly id: string;
  readonly project: SourceProject;
  readonly name: string;
  /** `project/job` */
  readonly key: string;
  readonly paused: boolean;
  /** The document as JSON. */
  readonly text: string;
  readonly definition: JobDefinition;
  readonly triggers: readonly SourceTrigger[];
  /** What Waterwheel does, and Millrace will not. */
  readonly notes: readonly string[];
}

export interface Plan {
  readonly projects: readonly SourceProject[];
  readonly jobs: readonly PlannedJob[];
  readonly stash: readonly SourceStash[];
  readonly faults: readonly Fault[];
}

interface Rows {
  readonly projects: readonly SourceProject[];
  readonly jobs: readonly SourceJob[];
  readonly stash: readonly SourceStash[];
}

/** Maximum bytes of a stash value. */
const maxValueBytes = 4 * 1024 * 1024;
const maxStashName = 200;
const maxDescription = 10_000;

/** `wanted`: names of projects; empty: all. The global stash is always imported, because tasks of every project read it. */
export function planImport(rows: Rows, wanted: readonly string[]): Plan {
  const unknown = wanted.filter((name) => !rows.projects.some((project) => project.name === name));
  const projects = rows.projects.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const byId = new Map(projects.map((project) => [project.id, project]));
  const planned = rows.jobs.flatMap((job) => {
    const project = byId.get(job.project_id);
    return project === undefined ? [] : [planJob(job, project)];
  });
  const jobs = planned.flatMap(({ job }) => job ?? []);
  const jobIds = new Set(rows.jobs.filter((job) => byId.has(job.project_id)).map(({ id }) => id));
  const stash = rows.stash.filter(
    ({ project, job }) => (project === null || byId.has(project)) && (job === null || jobIds.has(job)),
  );
  const faults = [
    ...unknown.map((name) => ({ path: `project ${name}`, message: 'is not in the database of Waterwheel' })),
    ...projects.flatMap(findProjectFaults),
    ...planned.flatMap((each) => each.faults),
    ...stash.flatMap((entry) => findStashFaults(entry, byId, jobs)),
  ];
  return { projects, jobs, stash, faults };
}

function planJob(
  row: SourceJob,
  project: SourceProject,
): { readonly job?: PlannedJob; readonly faults: readonly Fault[] } {
  const key = jobKey({ project: project.name, name: row.name });
  const fail = (faults: readonly Fault[]) => ({
    faults: faults.map(({ path, message }) => ({ path: path === '' ? key : `${key}: ${path}`, message })),
  });
  const stored = readDocument(row.document);
  if (stored === undefined) return fail([{ path: '', message: 'has no document; apply it to Waterwheel once more' }]);
  // an apply of the document must not start the job early; names may have changed since it was written
  const { paused: _, ...rest } = stored;
  const document = { ...rest, uuid: row.id, project: project.name, name: row.name };
  const parsed = parseJob(document);
  if (!parsed.ok) return fail(parsed.faults);
  const { job: definition } = parsed;
  const known = new Set(definition.triggers.map(({ name }) => name));
  const triggers = row.triggers.filter(({ name }) => known.has(name));
  const notes = [...findOrphans(row, definition), ...findOffGrid(definition, triggers)];
  const { id, name, paused } = row;
  const job = { id, project, name, key, paused, text: JSON.stringify(document), definition, triggers, notes };
  return { job, faults: [] };
}

function readDocument(text: string | null): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Triggers and tasks that a later document no longer named. Waterwheel goes on with them. */
function findOrphans(row: SourceJob, { triggers, tasks }: JobDefinition): string[] {
  const names = (parts: readonly { name: string }[]): Set<string> => new Set(parts.map(({ name }) => name));
  const [knownTriggers, knownTasks] = [names(triggers), names(tasks)];
  return [
    ...row.triggers.filter(({ name }) => !knownTriggers.has(name)).map(({ name }) => `trigger ${name}`),
    ...row.tasks.filter((name) => !knownTasks.has(name)).map((name) => `task ${name}`),
  ].map((what) => `${what} is no longer in the document; Waterwheel still uses it, Millrace will not`);
}

/** Instants here are start + n × period; Waterwheel counts from the latest one. They differ after the period was changed. */
function findOffGrid({ triggers }: JobDefinition, marks: readonly SourceTrigger[]): string[] {
  const latest = new Map(marks.map((mark) => [mark.name, mark.latest]));
  return triggers.flatMap(({ name, startMs, periodMs }) => {
    const at = latest.get(name)?.getTime();
    if (at === undefined || periodMs === null || at < startMs || (at - startMs) % periodMs === 0) return [];
    const nextMs = startMs + Math.ceil((at - startMs) / periodMs) * periodMs;
    const [next, theirs] = [nextMs, at + periodMs].map((ms) => new Date(ms).toISOString());
    return [
      `trigger ${name} was changed after it had fired: its next instant is ${next}; Waterwheel's would be ${theirs}`,
    ];
  });
}

function findProjectFaults({ name, description }: SourceProject): Fault[] {
  const path = `project ${name}`;
  const faults: Fault[] = [];
  if (!/^[^/@\p{Cc}]{1,200}$/u.test(name)) {
    faults.push({
      path,
      message: 'its name must have 1 to 200 printable characters, without / and @; rename it in Waterwheel',
    });
  }
  if (description.length > maxDescription) {
    faults.push({
      path,
      message: `its description has more than ${maxDescription} characters; shorten it in Waterwheel`,
    });
  }
  return faults;
}

function findStashFaults(
  { project, job, name, bytes, instant }: SourceStash,
  projects: ReadonlyMap<string, SourceProject>,
  jobs: readonly PlannedJob[],
): Fault[] {
  const wrong =
    name === '' || name.length > maxStashName
      ? `its name must have 1 to ${maxStashName} characters`
      : bytes > maxValueBytes
        ? `it has ${bytes} bytes, at most ${maxValueBytes} are allowed`
        : undefined;
  if (wrong === undefined) return [];
  const owner =
    job !== null
      ? `${jobs.find(({ id }) => id === job)?.key ?? job} at ${instant?.toISOString() ?? ''}`
      : project === null
        ? 'global'
        : (projects.get(project)?.name ?? project);
  return [{ path: `stash ${owner}: ${name}`, message: `${wrong}; delete it in Waterwheel` }];
}

interface WaitingToken {
  readonly task: string;
  readonly instant: Date;
  readonly count: number;
}

export interface JobTokens {
  readonly tokens: readonly WaitingToken[];
  /** Runs that Waterwheel has started and not ended. */
  readonly underWay: readonly { readonly key: string; readonly task: string; readonly instant: Date }[];
  /** Tokens of tasks that the document does not name, and negative counts. */
  readonly dropped: number;
}

/**
 * The counts of a job's tokens. A run that Waterwheel cancelled because its job was paused has used up its tokens without being
 * executed, and Waterwheel would repeat it: its count is made full again. So is that of a run under way, if `runAgain`.
 */
export function countTokens(job: PlannedJob, rows: readonly SourceToken[], runAgain: boolean): JobTokens {
  const thresholds = new Map(job.definition.tasks.map(({ name, threshold }) => [name, threshold]));
  const tokens: WaitingToken[] = [];
  const underWay: JobTokens['underWay'][number][] = [];
  let dropped = 0;
  for (const { task, instant, count, state } of rows) {
    const threshold = thresholds.get(task);
    if (threshold === undefined || count < 0) dropped += 1;
    if (threshold === undefined) continue;
    const isUnderWay = state === 'active' || state === 'running';
    if (isUnderWay) underWay.push({ key: job.key, task, instant });
    const missing = state === 'cancelled' || (isUnderWay && runAgain) ? threshold : 0;
    const total = Math.max(0, count) + missing;
    if (total > 0) tokens.push({ task, instant, count: total });
  }
  return { tokens, underWay, dropped };
}
