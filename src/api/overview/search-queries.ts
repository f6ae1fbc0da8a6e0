/**
 * Statements of the search. A project, job, task or trigger matches if each word is in its name or in the name of its job or
 * project, and at least one word is in its own name. All names are read, which is cheap (20 ms for 100,000). If very many
 * match, only the best are ranked exactly: names that equal the text, begin with it, or are short.
 */
import { type Db, empty, type Sql, sql } from '../../kernel/sql.ts';
import { liveColumns, runColumns, withNames } from '../runs/queries.ts';

export type HitRow = {
  readonly kind: 'project' | 'job' | 'task' | 'trigger' | 'run' | 'backfill' | 'flow' | 'execution';
  readonly id: string;
  readonly name: string;
  readonly job_id: string | null;
  readonly job_name: string | null;
  readonly project_id: string | null;
  readonly project_name: string | null;
};

const maxRanked = 1_000;

export interface Wanted {
  /** The whole text, as it was typed. */
  readonly text: string;
  /** Its words as patterns of `like`. */
  readonly patterns: readonly string[];
  /** The text as the beginning of a name (for `like`), and as the beginning of a word (for `~`). */
  readonly prefix: string;
  readonly wordStart: string;
  readonly limit: number;
}

const projectColumns = sql`project.id as project_id, project.name as project_name`;
const jobColumns = sql`job.id as job_id, job.name as job_name, ${projectColumns}`;
const ofNothing = sql`
           null::uuid as job_id, null::text as job_name, null::uuid as project_id, null::text as project_name`;

/** The best hits of one kind: equal names first, then names that begin with the text, then names with such a word. */
function best(place: number, found: Sql, { text, prefix, wordStart, limit }: Wanted): Sql {
  return sql`
    (select ${place}::integer as place, f.*,
            case when lower(f.name) = lower(${text}) or lower(f.path) = lower(${text}) then 0
                 when lower(f.name) like lower(${prefix}) then 1
                 when lower(f.name) ~ lower(${wordStart}) then 2
                 else 3 end as rank
       from (${found}) as f
      order by rank, length(f.name), f.path, f.id
      limit ${limit})`;
}

/** Jobs with their paths in lower case, computed once for all tasks and triggers. */
const places = sql`
      select ${jobColumns}, lower(project.name || '/' || job.name) as path
        from job
        join project on project.id = job.project_id
       where job.deleted_at is null`;

/**
 * Tasks or triggers. All words are checked before the limit applies. A single word must be in the name itself. `offset 0`
 * prevents the planner from converting the names to lower case again for each condition.
 */
function partsOf(kind: string, table: Sql, lowered: Sql, { text, patterns, prefix }: Wanted): Sql {
  const path = sql`place.path || '/' || own.lowered`;
  const elsewhere = patterns.length > 1;
  return sql`
      select ${kind}::text as kind, near.id, near.name, place.job_id, place.job_name, place.project_id,
             place.project_name, place.project_name || '/' || place.job_name || '/' || near.name as path
        from (
          select own.id, own.job_id, own.name
            from (
              select part.id, part.job_id, part.name, lower(part.name) as lowered
                from ${table} part
               where part.removed_at is null
              offset 0
            ) as own
            ${elsewhere ? sql`join place on place.job_id = own.job_id and ${path} like all (${lowered})` : empty}
           where own.lowered like any (${lowered})
           order by case when ${elsewhere && text.includes('/') ? path : sql`own.lowered`} = (select lower(${text})) then 0
                         when own.lowered like (select lower(${prefix})) then 1
                         else 2 end,
                    length(own.name), own.id
           limit ${maxRanked}
        ) as near
        join place on place.job_id = near.job_id`;
}

export function findByWords(db: Db, wanted: Wanted): Promise<HitRow[]> {
  const lowered = sql`array(select lower(p) from unnest(${wanted.patterns}::text[]) as w (p))`;
  const holds = (name: Sql, path: Sql): Sql =>
    sql`lower(${name}) like any (${lowered}) and lower(${path}) like all (${lowered})`;
  const projects = sql`
      select 'project' as kind, project.id, project.name, ${ofNothing}, project.name as path
        from project
       where project.deleted_at is null and ${holds(sql`project.name`, sql`project.name`)}`;
  const jobPath = sql`project.name || '/' || job.name`;
  const jobs = sql`
      select 'job' as kind, job.id, job.name, null::uuid as job_id, null::text as job_name, ${projectColumns},
             ${jobPath} as path
        from job
        join project on project.id = job.project_id
       where job.deleted_at is null and ${holds(sql`job.name`, jobPath)}`;
  const flows = sql`
      select 'flow' as kind, flow.id, flow.name, ${ofNothing}, flow.name as path
        from flow
       where flow.deleted_at is null and ${holds(sql`flow.name`, sql`flow.name`)}`;
  return db.rows<HitRow>(sql`
    with place as materialized (${places})
    select hit.kind, hit.id, hit.name, hit.job_id, hit.job_name, hit.project_id, hit.project_name
      from (
        ${best(0, projects, wanted)}
        union all
        ${best(1, jobs, wanted)}
        union all
        ${best(2, partsOf('task', sql`task`, lowered, wanted), wanted)}
        union all
        ${best(3, partsOf('trigger', sql`trigger`, lowered, wanted), wanted)}
        union all
        ${best(4, flows, wanted)}
        union all
        ${best(5, executionsWhere(sql`execution.key = ${wanted.text}`), wanted)}
      ) as hit
     order by hit.rank, hit.place, length(hit.name), hit.path, hit.id
     limit ${wanted.limit}`);
}

/** Executions are named by their flow and their key. */
function executionsWhere(condition: Sql): Sql {
  return sql`
      select 'execution' as kind, execution.id, flow.name || coalesce(' ' || execution.key, '') as name, ${ofNothing},
             coalesce(execution.key, '') as path
        from execution
        join flow on flow.id = execution.flow_id
       where ${condition}`;
}

/** Any object with this id. Runs and backfills of deleted jobs are found as well. */
export function findById(db: Db, id: string): Promise<HitRow[]> {
  const parts = (kind: string, table: Sql): Sql => sql`
    select ${kind}::text as kind, part.id, part.name, ${jobColumns}
      from ${table} part
      join job on job.id = part.job_id and job.deleted_at is null
      join project on project.id = job.project_id
     where part.id = ${id} and part.removed_at is null`;
  return db.rows<HitRow>(sql`
    select 'project' as kind, project.id, project.name, ${ofNothing}
      from project
     where project.id = ${id} and project.deleted_at is null
    union all
    select 'job', job.id, job.name, null, null, ${projectColumns}
      from job
      join project on project.id = job.project_id
     where job.id = ${id} and job.deleted_at is null
    union all
    ${parts('task', sql`task`)}
    union all
    ${parts('trigger', sql`trigger`)}
    union all
    select 'run', named.id, coalesce(named.task_name, 'run'), named.job_id, named.job_name, project.id, project.name
      from (${withNames(sql`
        select ${liveColumns} from live where live.id = ${id}
        union all
        select ${runColumns} from run where run.id = ${id}`)}) as named
      left join job on job.id = named.job_id
      left join project on project.id = job.project_id
    union all
    select 'backfill', backfill.id, coalesce(backfill.name, 'backfill'), ${jobColumns}
      from backfill
      join job on job.id = backfill.job_id
      join project on project.id = job.project_id
     where backfill.id = ${id}
    union all
    select 'flow', flow.id, flow.name, ${ofNothing}
      from flow
     where flow.id = ${id} and flow.deleted_at is null
    union all
    select own.kind, own.id, own.name, own.job_id, own.job_name, own.project_id, own.project_name
      from (${executionsWhere(sql`execution.id = ${id}`)}) as own`);
}
