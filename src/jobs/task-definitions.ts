/** Task definitions for workers, from the version that a run was made from: stored, or parsed from its document. */
import type { Pool } from 'pg';
import type { DefinitionKey, TaskDefinition as WireDefinition } from '../contract/wire.ts';
import { type Db, sql } from '../kernel/sql.ts';
import type { JsonObject, TaskDefinition } from './definition.ts';
import { workForm } from './version-work.ts';
import { type CachedJob, DocumentCache } from './document/cache.ts';
import { storedLimits } from './document/limits.ts';
import { storedParser } from '../documents/parser.ts';
import { parseJobDocument } from './document/parse-request.ts';

type Row = {
  task_id: string;
  version: number;
  task_name: string;
  job_id: string;
  job_name: string;
  project_id: string;
  project_name: string;
  /** The stored data of the version; null: its document must be parsed. */
  work: TaskWork | null;
  params: JsonObject | null;
};
type TaskWork = Pick<TaskDefinition, 'timeoutMs' | 'queue' | 'runtime'>;
type Version = { job_id: string; version: number; definition: string };

/** One cache of documents per tenant. It lives as long as the tenant's pool. */
const caches = new WeakMap<Pool, DocumentCache>();

export function cacheOf(pool: Pool): DocumentCache {
  const known = caches.get(pool) ?? new DocumentCache();
  caches.set(pool, known);
  return known;
}

const keyOf = (row: { job_id: string; version: number }): string => `${row.job_id} ${row.version}`;

interface Source {
  readonly tenant: string;
  /** Only definitions that this worker holds a run of. */
  readonly heldBy?: string | undefined;
}

export async function readDefinitions(
  db: Db,
  source: Source,
  keys: readonly DefinitionKey[],
  cache: DocumentCache,
): Promise<WireDefinition[]> {
  return (await readQueuedDefinitions(db, source, keys, cache)).map(({ definition }) => definition);
}

/** Like `readDefinitions`, with the queue of each task. */
export async function readQueuedDefinitions(
  db: Db,
  { tenant, heldBy }: Source,
  keys: readonly DefinitionKey[],
  cache: DocumentCache,
): Promise<{ definition: WireDefinition; queue: string }[]> {
  const rows = await findTasks(db, keys, heldBy);
  const unstored = rows.filter(({ work }) => work === null);
  const documents = await loadDocuments(db, { tenant, rows: unstored, cache });
  return rows.flatMap((row) => {
    const job = documents.get(keyOf(row));
    const task = row.work ?? job?.tasks.get(row.task_name);
    const params = row.params ?? job?.params;
    if (params === undefined || task === undefined) return [];
    const definition = {
      tenant,
      task: row.task_id,
      version: row.version,
      name: row.task_name,
      job: { id: row.job_id, name: row.job_name },
      project: { id: row.project_id, name: row.project_name },
      timeout_ms: task.timeoutMs,
      params,
      runtime: task.runtime,
    };
    return [{ definition, queue: task.queue }];
  });
}

function findTasks(db: Db, keys: readonly DefinitionKey[], heldBy: string | undefined): Promise<Row[]> {
  const held = sql`(k.task_id, k.version) in (select task_id, version from live where worker_id = ${heldBy})`;
  return db.rows<Row>(sql`
    select task.id as task_id, k.version, task.name as task_name, job.id as job_id, job.name as job_name,
           project.id as project_id, project.name as project_name, v.work, v.params
      from unnest(${keys.map((k) => k.task)}::uuid[], ${keys.map((k) => k.version)}::integer[]) as k (task_id, version)
      join task on task.id = k.task_id
      join job on job.id = task.job_id
      join project on project.id = job.project_id
      left join lateral (
        select version.work -> 'tasks' -> task.name as work, version.work -> 'params' as params
          from job_version as version
         where version.job_id = job.id and version.version = k.version
           and version.work ->> 'form' = ${String(workForm)}
      ) as v on true
     where ${heldBy === undefined ? sql`true` : held}`);
}

interface Wanted {
  readonly tenant: string;
  readonly rows: readonly Row[];
  readonly cache: DocumentCache;
}

/** Maximum documents read by one statement. Each may have 4 MB. */
const versionsPerRead = 8;

/** Reads each document once, however many of its tasks are requested. */
async function loadDocuments(db: Db, { tenant, rows, cache }: Wanted): Promise<Map<string, CachedJob>> {
  const wanted = new Map(rows.map((row) => [keyOf(row), row]));
  const found = new Map<string, CachedJob>();
  const takeCached = (): Row[] => {
    for (const key of wanted.keys()) {
      const job = cache.get(key);
      if (job === undefined) continue;
      found.set(key, job);
      wanted.delete(key);
    }
    return [...wanted.values()];
  };
  if (takeCached().length === 0) return found;
  await cache.inTurn(async () => {
    // the previous request may have read some of them
    const missing = takeCached();
    for (let i = 0; i < missing.length; i += versionsPerRead) {
      for (const [key, job] of await readVersions(db, tenant, missing.slice(i, i + versionsPerRead))) {
        found.set(key, job);
        cache.set(key, job);
      }
    }
  });
  return found;
}

async function readVersions(db: Db, tenant: string, rows: readonly Row[]): Promise<(readonly [string, CachedJob])[]> {
  const versions = await db.rows<Version>(sql`
    select v.job_id, v.version, v.definition::text as definition
      from job_version v
      join unnest(${rows.map((r) => r.job_id)}::uuid[], ${rows.map((r) => r.version)}::integer[]) as k (job_id, version)
        on k.job_id = v.job_id and k.version = v.version`);
  const read: (readonly [string, CachedJob])[] = [];
  for (const row of versions) {
    const { definition: text } = row;
    const result = await parseJobDocument(storedParser, { text, format: 'json', tenant, limits: storedLimits });
    if (!result.ok) continue;
    const tasks = new Map(result.job.tasks.map((task) => [task.name, task]));
    read.push([keyOf(row), { tasks, params: result.job.params, chars: text.length }]);
  }
  return read;
}
