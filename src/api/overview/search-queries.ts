/**
 * Statements of the search. By words: a part is found when each word is in its name or in those of what it belongs to,
 * and at least one in its own. All names are read, which is cheap (20 ms for 100,000); of what very many hold only the
 * nearest are ranked to the letter: names that are the text, that begin with it, that are short.
 */
import { type Db, empty, type Sql, sql } from '../../kernel/sql.ts';
import { liveColumns, runColumns, withNames } from '../runs/queries.ts';

export type HitRow = {
  readonly kind: 'project' | 'job' | 'task' | 'trigger' | 'run' | 'backfill';
  readonly id: string;
  readonly name: string;
  readonly job_id: string | null;
  readonly job_name: string | null;
  readonly project_id: string | null;
  readonly project_name: string | null;
};

const mostRanked = 1_000;

export interface Wanted {
  /** The whole text, as it was typed. */
  readonly text: string;
  /** Its words as `like` takes them. */
  readonly patterns: readonly string[];
  /** The text as the beginning of a name, for `like`; and as that of a word, for `~`. */
  readonly prefix: string;
  readonly wordStart: string;
  readonly limit: number;
}

const projectColumns = sql`project.id as project_id, project.name as project_name`;
const jobColumns = sql`job.id as job_id, job.name as job_name, ${projectColumns}`;
const ofNothing = sql`
           null::uuid as job_id, null::text as job_name, null::uuid as project_id, null::text as project_name`;

/** The best of one kind: the name itself first, then what begins with it, then what has a word that does. */
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

/** Jobs by their paths in lower case, made once for all their parts. */
const places = sql`
      select ${jobColumns}, lower(project.name || '/' || job.name) as path
        from job
        join project on project.id = job.project_id
       where job.deleted_at is null`;

/**
 * Tasks or triggers; every word is looked for before any are left out. One word by itself is in the part's own name.
 * `offset 0` keeps the names from being put into lower case again for each condition.
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
           limit ${mostRanked}
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
      ) as hit
     order by hit.rank, hit.place, length(hit.name), hit.path, hit.id
     limit ${wanted.limit}`);
}

/** Whatever has this id; runs and backfills also of jobs that are gone. */
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
     where backfill.id = ${id}`);
}
