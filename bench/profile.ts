/**
 * PostgreSQL's time by statement (`--profile`), per 1,000 runs, including statements inside the stages' functions. Node's
 * CPU profiles are left as .cpuprofile files, which the developer tools of any browser open.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { type Db, sql } from '../src/kernel/sql.ts';
import type { Report } from './report.ts';

export const profilingSettings: Readonly<Record<string, string>> = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'all',
  'pg_stat_statements.track_planning': 'on',
};

type StatementTime = {
  ms: number;
  planning: number;
  calls: number;
  rows: number;
  wal: number;
  buffers: number;
  text: string;
};

export async function startProfile(db: Db): Promise<void> {
  await db.exec(sql`create extension if not exists pg_stat_statements schema public`);
  await db.exec(sql`select public.pg_stat_statements_reset()`);
}

const maxTextLength = 110;

/** Prints the costliest statements first. The time of a call includes the statements inside the function it calls. */
export async function printProfile(db: Db, runs: number, report: Report): Promise<void> {
  const found = await db.rows<StatementTime>(sql`
    select total_exec_time * 1000 / ${runs}::float8 as ms, total_plan_time * 1000 / ${runs}::float8 as planning,
           calls::float8 as calls, rows::float8 as rows, wal_bytes::float8 / ${runs}::float8 as wal,
           shared_blks_hit * 1000 / ${runs}::float8 as buffers, regexp_replace(query, '\\s+', ' ', 'g') as text
      from public.pg_stat_statements
      join pg_database on pg_database.oid = dbid and datname = current_database()
     order by total_exec_time desc
     limit 24`);
  report.line('Statements by time per 1,000 runs');
  report.table(
    ['statement', 'ms', 'planning', 'calls', 'rows', 'WAL KB', 'buffers'],
    found.map((s) => [
      s.text.slice(0, maxTextLength),
      s.ms.toFixed(2),
      s.planning.toFixed(2),
      s.calls,
      s.rows,
      s.wal.toFixed(1),
      Math.round(s.buffers),
    ]),
  );
}

/** Does the work, with a CPU profile of this process if there is a folder for it. */
export async function profiled<T>(folder: string | undefined, name: string, work: () => Promise<T>): Promise<T> {
  if (folder === undefined) return work();
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  const done = await work();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.cpuprofile`), JSON.stringify(profile));
  return done;
}
