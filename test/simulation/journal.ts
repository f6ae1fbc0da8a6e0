/**
 * The journal: every changed row of the graph, in commit order, written by triggers of the database itself. It uses none
 * of the product's functions, so that oracles can judge them by it.
 */
import { type Db, sql } from '../../src/kernel/sql.ts';

/** A change of one row: inserted (no `before`), updated, or deleted (no `after`). */
export interface Change {
  readonly table: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

/** Columns as in JSON; times are strings. */
export type Row = Readonly<Record<string, unknown>>;

export const textOf = (row: Row | undefined, column: string): string => String(row?.[column]);
export const numberOf = (row: Row | undefined, column: string): number => Number(row?.[column]);
export const timeOf = (row: Row | undefined, column: string): number => Date.parse(textOf(row, column));

/** The changes of one commit, and the step of the world that made it. */
export interface Commit {
  readonly step: number;
  readonly changes: readonly Change[];
}

/** Installed once per database. Only steps of the world may write there afterwards. */
export async function installJournal(db: Db): Promise<void> {
  await db.exec(sql`create schema simulation`);
  await db.exec(sql`
    create unlogged table simulation.journal (
      n bigint generated always as identity primary key,
      step integer not null,
      commit text not null,
      source text not null,
      before json,
      after json)`);
  await db.exec(sql`
    create function simulation.note() returns trigger language plpgsql as $$
    begin
      insert into simulation.journal (step, commit, source, before, after)
      values (current_setting('simulation.step')::integer, pg_current_xact_id()::text,
              case when tg_table_name like 'event%' then 'event' else tg_table_name end,
              to_json(old), to_json(new));
      return null;
    end $$`);
  await db.exec(sql`
    do $$
    declare
      v_table text;
    begin
      foreach v_table in array array['firing', 'token', 'live', 'run', 'retry', 'event'] loop
        execute format('create trigger simulated after insert or update or delete on %I
                          for each row execute function simulation.note()', v_table);
      end loop;
    end $$`);
}

export async function markStep(db: Db, step: number): Promise<void> {
  await db.exec(sql`select set_config('simulation.step', ${String(step)}, false)`);
}

type JournalRow = { step: number; commit: string; source: string; before: Row | null; after: Row | null };

export async function readJournal(db: Db): Promise<Commit[]> {
  const rows = await db.rows<JournalRow>(sql`
    select step, commit, source, before, after from simulation.journal order by n`);
  const commits: { commit: string; step: number; changes: Change[] }[] = [];
  for (const { step, commit, source, before, after } of rows) {
    const change = { table: source, before: before ?? undefined, after: after ?? undefined };
    const last = commits.at(-1);
    if (last?.commit === commit) last.changes.push(change);
    else commits.push({ commit, step, changes: [change] });
  }
  return commits;
}
