/** Imports a project under its own id, with its description and configuration. */
import { isDeepStrictEqual } from 'node:util';
import { MillraceError } from '../../errors.ts';
import type { Recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { findConfig, insertProject, lockProject, lockProjectNamed, updateProject } from '../projects/queries.ts';
import type { ImportOutcome, importEndpoints } from './endpoints.ts';

export type ProjectDraft = Input<(typeof importEndpoints)['POST /api/imports/projects']>['body']['project'];

export interface ProjectResult {
  readonly id: string | null;
  readonly outcome: ImportOutcome;
  readonly reason: string | null;
}

export async function importProject(
  tx: Recording,
  project: ProjectDraft,
  { at, overwrite }: { at: Date; overwrite: boolean },
): Promise<ProjectResult> {
  const byName = await lockProjectNamed(tx, project.name);
  const byId = await lockProject(tx, project.id);
  const ours = byName ?? byId;
  if (ours === undefined) {
    await insertProject(tx, { ...project, config: project.config, at });
    record(tx, 'project.created', project);
    return { id: project.id, outcome: 'created', reason: null };
  }
  const difference = await differenceOf(tx, ours, project);
  const { id } = ours;
  if (difference === undefined) return { id, outcome: 'unchanged', reason: null };
  if (!overwrite)
    return {
      id: ours.deleted ? null : id,
      outcome: 'conflict',
      reason: `${difference}; --overwrite takes that of the source`,
    };
  // two projects cannot be merged into one
  if (byName !== undefined && byId !== undefined && byName.id !== byId.id && !byId.deleted) {
    throw new MillraceError(
      'conflict',
      `the project ${project.id} is called ${byId.name} here; rename it, or ${byName.name}`,
    );
  }
  const written = await updateProject(tx, { ...project, config: project.config, id, at });
  if (written) record(tx, ours.deleted ? 'project.created' : 'project.changed', { ...project, id });
  return { id, outcome: written ? 'changed' : 'unchanged', reason: null };
}

type Ours = NonNullable<Awaited<ReturnType<typeof lockProject>>>;

async function differenceOf(tx: Recording, ours: Ours, project: ProjectDraft): Promise<string | undefined> {
  if (ours.deleted) return 'it was deleted here';
  if (ours.id !== project.id) return `a project of that name exists here with another id, ${ours.id}`;
  if (ours.name !== project.name) return `it is called ${ours.name} here`;
  if (ours.description !== project.description) return 'its description differs here';
  const isSame = project.config === undefined || isDeepStrictEqual(await findConfig(tx, ours.id), project.config);
  return isSame ? undefined : 'its configuration differs here';
}

type Recorded = Pick<ProjectDraft, 'id' | 'name' | 'description'>;

function record(tx: Recording, type: string, { id, name, description }: Recorded): void {
  // readers load hundreds of events at a time, so bodies must be small
  const body = { name, description: description.slice(0, 1_000).toWellFormed() };
  tx.record('millrace_projects', { type, subject: id, body });
}
