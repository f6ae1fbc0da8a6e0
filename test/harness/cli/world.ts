/** For the tests of this folder only: projects and jobs in memory, behind the endpoints that `apply` and its kin call. */
import { MillraceError } from '../../../src/errors.ts';
import type { JobDefinition } from '../../../src/jobs/definition.ts';
import { parseJobText } from '../../../src/jobs/document/parse-job.ts';
import { newId } from '../../../src/kernel/id.ts';
import type { Change } from '../../../src/cli/print/diff.ts';
import { hasPart } from '../../../src/cli/commands/jobs/documents.ts';
import type { SomeHandlers } from './shell.ts';

interface WorldJob {
  readonly id: string;
  readonly job: JobDefinition;
  readonly version: number;
  paused: boolean;
}

export interface World {
  readonly projects: Map<string, { id: string; name: string; description: string }>;
  readonly jobs: Map<string, WorldJob>;
  readonly handlers: SomeHandlers;
  jobNames(): string[];
}

export function makeWorld(projects: readonly string[] = []): World {
  const world: World = {
    projects: new Map(projects.map((name) => [name, { id: newId(), name, description: '' }])),
    jobs: new Map(),
    handlers: {
      'GET /api/projects': async ({ query }) => {
        if (query.name === undefined)
          return [...world.projects.values()].filter(({ name }) => name > (query.after ?? ''));
        return found(world.projects.get(query.name), `project ${query.name}`);
      },
      'POST /api/projects': async ({ body: { name, description } }) => {
        const project = { id: newId(), name, description };
        world.projects.set(name, project);
        return project;
      },
      'GET /api/projects/{id}/jobs': async ({ params }) => {
        const project = [...world.projects.values()].find(({ id }) => id === params.id)?.name;
        const jobs = [...world.jobs.values()].filter(({ job }) => job.project === project);
        const none = { success: 0, running: 0, failure: 0, waiting: 0, error: 0 };
        return jobs.map(({ id, job, paused }) => ({ ...none, job_id: id, name: job.name, description: '', paused }));
      },
      'PUT /api/jobs': async ({ body, query }) => {
        const parsed = parseJobText(body.text, body.format);
        if (!parsed.ok) throw new MillraceError('bad_document', 'faults', { faults: parsed.faults });
        const answer = put(world, parsed.job, query.dry_run);
        return Response.json({ ...answer, warnings: parsed.warnings }, { status: query.dry_run ? 200 : 201 });
      },
      'GET /api/jobs': async ({ query }) => {
        const items = [...world.jobs.values()].map((each) => jobRow(world, each));
        if (query.name === undefined) return { items, next: null };
        return found(
          items.find((job) => job.project === query.project && job.name === query.name),
          'such job',
        );
      },
      'DELETE /api/jobs/{id}': async ({ params }) => {
        if (!world.jobs.delete(params.id)) throw new MillraceError('not_found', 'no such job');
      },
      'PUT /api/jobs/{id}/paused': async ({ params, body }) => {
        found(world.jobs.get(params.id), 'such job').paused = body.paused;
      },
      'GET /api/jobs/{id}/tasks': async ({ params }) =>
        found(world.jobs.get(params.id), 'such job').job.tasks.map(({ name }) => {
          return { task_id: newId(), name, latest_trigger_datetime: null, latest_state: null };
        }),
    },
    jobNames: () => [...world.jobs.values()].map(({ job }) => `${job.project}/${job.name}`).sort(),
  };
  return world;
}

function jobRow(world: World, { id, job, version, paused }: WorldJob) {
  const { project, name, description } = job;
  const project_id = found(world.projects.get(project), 'project').id;
  return { id, project_id, project, name, description, paused, version, updated_at: '2030-01-01T00:00:00.000Z' };
}

function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new MillraceError('not_found', `there is no ${what}`);
  return value;
}

function put(world: World, job: JobDefinition, dryRun: boolean) {
  if (!world.projects.has(job.project)) throw new MillraceError('bad_reference', `there is no project ${job.project}`);
  checkReferences(world, job);
  const old = [...world.jobs.values()].find((each) => isSame(each.job, job));
  const changes = changesOf(old?.job, job);
  const same = old !== undefined && changes.length === 0;
  const id = old?.id ?? newId();
  const version = same ? old.version : (old?.version ?? 0) + 1;
  if (!dryRun) world.jobs.set(id, { id, job, version, paused: false });
  return { id, version, outcome: same ? 'unchanged' : old ? 'changed' : 'created', dry_run: dryRun, changes };
}

function isSame(old: JobDefinition, job: JobDefinition): boolean {
  if (job.uuid !== null) return old.uuid === job.uuid;
  return old.project === job.project && old.name === job.name;
}

function checkReferences(world: World, job: JobDefinition): void {
  const faults = job.foreignReferences.flatMap(({ path, reference }) => {
    const target = [...world.jobs.values()].find((each) =>
      isSame(each.job, { ...job, uuid: null, project: reference.project, name: reference.job }),
    );
    return target && hasPart(target.job, reference) ? [] : [{ path, message: 'refers to nothing' }];
  });
  if (faults.length > 0)
    throw new MillraceError('bad_reference', 'it refers to something that does not exist', { faults });
}

/** Compares by top-level field, which is enough to test what the command shows. */
function changesOf(old: JobDefinition | undefined, job: JobDefinition): Change[] {
  if (old === undefined) return [{ path: '', change: 'added', after: job.document }];
  return Object.keys({ ...old.document, ...job.document }).flatMap((path): Change[] => {
    const [before, after] = [old.document[path], job.document[path]];
    if (JSON.stringify(before) === JSON.stringify(after)) return [];
    if (before === undefined) return [{ path, change: 'added', after }];
    return after === undefined ? [{ path, change: 'removed', before }] : [{ path, change: 'changed', before, after }];
  });
}

const at = '2030-01-01T00:00:00.000Z';

const tokenOf = (instant: string, state: 'success' | 'active') => ({
  trigger_datetime: instant,
  task_states: { t: { task_name: 't', task_id: newId(), state } },
});

/** What `millrace job`, `activate` and `clear` ask for beside: the same for every job. */
export const jobViews = (world: World): SomeHandlers => ({
  'GET /api/jobs/{id}': async ({ params }) => {
    const { job, version, paused } = world.jobs.get(params.id) ?? {};
    if (!job) throw new MillraceError('not_found', `there is no job ${params.id}`);
    return {
      id: params.id,
      project_id: params.id,
      project: job.project,
      name: job.name,
      description: job.description,
      paused: paused ?? false,
      version: version ?? 0,
      raw_definition: '',
      active_tasks: 1,
      waiting_tasks: 2,
      succeeded_tasks_last_hour: 3,
      failed_tasks_last_hour: 4,
      error_tasks_last_hour: 5,
      next_firing: paused ? null : { trigger_id: params.id, trigger_name: 'daily', instant: at, due: at },
    };
  },
  'GET /api/jobs/{id}/triggers': async () => [
    {
      trigger_id: newId(),
      trigger_name: 'daily',
      start_datetime: at,
      end_datetime: null,
      earliest_trigger_datetime: null,
      latest_trigger_datetime: null,
      period: 86_400,
      cron: null,
      timezone: null,
      trigger_offset: -60,
      catchup: 'none',
    },
  ],
  'GET /api/jobs/{id}/tokens-overview': async () => ({
    tasks: ['t'],
    tokens: [tokenOf(at, 'success'), tokenOf('2029-12-31T00:00:00.000Z', 'active')],
  }),
  'DELETE /api/jobs/{id}/tokens/{instant}': async ({ params }) => {
    return { tokens_cleared: params.instant.getUTCFullYear() === 2030 ? 2 : 0 };
  },
  'PUT /api/tasks/{id}/tokens/{instant}': async () => ({ runs: [newId()] }),
});
