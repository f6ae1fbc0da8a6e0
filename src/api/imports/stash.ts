/**
 * Imports stash values: plain in the request, encrypted here (I12).
 *
 * 1. A missing value is written. An equal one stays, without being encrypted again.
 * 2. One that differs is a conflict, unless `overwrite` is given. In a job's stash, which its tasks write, the source wins.
 * 3. The stash of a job that is active here stays as it is.
 */
import { MillraceError } from '../../errors.ts';
import type { Recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { type ApiContext, badRequest } from '../context.ts';
import type { importEndpoints } from './endpoints.ts';
import { findStash, lockImported, type SealedValue, type StashKey, writeStash } from './queries.ts';

type StashBody = Input<(typeof importEndpoints)['POST /api/imports/stash']>['body'];
type Entry = StashBody['entries'][number];

interface StashResult {
  written: number;
  unchanged: number;
  kept: number;
  readonly conflicts: number[];
}

export async function importStash(tx: Recording, { secrets }: ApiContext, body: StashBody): Promise<StashResult> {
  const keys = body.entries.map(keyOf);
  const owners = await findOwners(tx, keys, body.dry_run);
  const present = await findStash(tx, keys);
  const result: StashResult = { written: 0, unchanged: 0, kept: 0, conflicts: [] };
  const values: SealedValue[] = [];
  for (const [i, { data }] of body.entries.entries()) {
    const key = keys[i] as StashKey;
    const plain = Buffer.from(data, 'base64');
    const sealed = present[i] ?? undefined;
    if (key.job !== null && owners.active.has(key.job)) result.kept += 1;
    else if (sealed !== undefined && secrets.decrypt(sealed).equals(plain)) result.unchanged += 1;
    else if (sealed !== undefined && key.job === null && !body.overwrite) result.conflicts.push(i);
    else values.push({ ...key, data: secrets.encrypt(plain) });
  }
  result.written = values.length;
  if (body.dry_run || values.length === 0) return result;
  await writeStash(tx, values);
  // as for values that people write; those of jobs are written by tasks
  for (const { project, job, name } of values) {
    if (job === null) tx.record('millrace_projects', { type: 'stash.written', subject: project, body: { key: name } });
  }
  return result;
}

function keyOf({ project, job, instant, name }: Entry, i: number): StashKey {
  const path = `body.entries[${i}]`;
  if (project != null && job != null) throw badRequest(`${path}.project`, 'give a project or a job, not both');
  if (job != null && instant == null) throw badRequest(`${path}.instant`, 'the stash of a job needs an instant');
  const owner = { project: project?.toLowerCase() ?? null, job: job?.toLowerCase() ?? null };
  return { ...owner, instant: job == null ? null : (instant ?? null), name };
}

/** Locks the jobs, so that none is started or deleted meanwhile. In a dry run, projects and jobs may not exist yet. */
async function findOwners(
  tx: Db,
  keys: readonly StashKey[],
  dryRun: boolean,
): Promise<{ readonly active: ReadonlySet<string> }> {
  const rows = (await lockImported(tx, distinct(keys.map(({ job }) => job)))).filter((row) => !row.isDeleted);
  if (!dryRun) {
    const projects = distinct(keys.map(({ project }) => project));
    const present = new Set([...rows.map(({ id }) => id), ...(await findLive(tx, projects))]);
    const missing = keys.find(({ project, job }) => (project ?? job) !== null && !present.has(project ?? job ?? ''));
    if (missing !== undefined) {
      const what = missing.project === null ? `job not found: ${missing.job}` : `project not found: ${missing.project}`;
      throw new MillraceError('not_found', what);
    }
  }
  return { active: new Set(rows.filter(({ isActive }) => isActive).map(({ id }) => id)) };
}

async function findLive(tx: Db, projects: readonly string[]): Promise<string[]> {
  const rows = await tx.rows<{ id: string }>(sql`
    select id from project where id = any (${projects}::uuid[]) and deleted_at is null order by id for share`);
  return rows.map(({ id }) => id);
}

function distinct(ids: readonly (string | null)[]): string[] {
  return [...new Set(ids)].flatMap((id) => id ?? []);
}
