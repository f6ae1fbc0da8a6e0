/**
 * Generates one SQL script that installs or upgrades, for migration tools. It takes the same locks and applies the same
 * migrations, functions and records as `install` and `upgrade`. The launcher needs no message. If the database is not at the
 * expected version, the script fails and changes nothing.
 */
import { MillraceError } from '../errors.ts';
import { locks } from '../postgres/locks.ts';
import { type FunctionSet, sqlLiteral } from '../postgres/function-set.ts';
import { hasChecksum, type Migration } from '../postgres/migrate.ts';

export interface ScriptWish {
  /** The tenant's present version; undefined: Millrace is not installed. */
  readonly from: VersionSchema | undefined;
  readonly to: VersionSchema;
}

/** A version, and the migrations and functions that make its schema. */
interface VersionSchema {
  readonly version: string;
  readonly migrations: readonly Migration[];
  readonly functions?: FunctionSet | undefined;
}

export function migrationScript({ from, to }: ScriptWish): string {
  refuseOtherPast(from, to);
  const known = from?.migrations.length ?? 0;
  const parts = [
    `-- Millrace: ${from === undefined ? `install ${to.version}` : `upgrade from ${from.version} to ${to.version}`}.`,
    "-- To be run in the tenant's database, as one transaction; nothing else has to be stopped before.",
    'begin;',
    lockStatements,
    from === undefined ? makeSchema : expectVersion(from.version, known),
    'set local search_path to millrace;',
    ...to.migrations.slice(known).map(applied),
    recordVersion(to.version),
    ...(to.functions === undefined ? [] : [to.functions.text.trimEnd()]),
    'commit;',
  ];
  return `${parts.join('\n\n')}\n`;
}

function refuseOtherPast(from: ScriptWish['from'], to: ScriptWish['to']): void {
  const differs = from?.migrations.find((each, i) => !isKnown(each, to.migrations[i]));
  if (from === undefined || differs === undefined) return;
  throw new MillraceError(
    'conflict',
    `there is no way from ${from.version} to ${to.version}: ${to.version} does not have ${differs.name} as it is there`,
  );
}

function isKnown({ checksum }: Migration, ours: Migration | undefined): boolean {
  return ours !== undefined && hasChecksum(ours, checksum);
}

const lockStatements = `-- One migration at a time, and no connection of any engine. Schedulers and API processes leave when they see that this
-- waits, within seconds, and look at the version when it has ended, however it ends.
select pg_advisory_xact_lock(${locks.migrate.join(', ')});
select pg_advisory_xact_lock(${locks.drain.join(', ')});`;

const makeSchema = `-- fails where Millrace is installed already
create schema millrace;
create table millrace.installation (
  singleton boolean primary key check (singleton),
  version text not null,
  updated_at timestamptz not null default clock_timestamp()
);
create table millrace.migration (
  number integer primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
);`;

function expectVersion(version: string, migrations: number): string {
  return `do $$
begin
  if not exists (select from millrace.installation where version = ${sqlLiteral(version)})
     or (select count(*) from millrace.migration) <> ${migrations} then
    raise exception 'this database is not at version %: it is at %', ${sqlLiteral(version)},
      (select version from millrace.installation);
  end if;
end $$;`;
}

function applied({ number, name, text, checksum }: Migration): string {
  return `-- ${name}\n${text.trimEnd()}\n;
insert into migration (number, name, checksum) values (${number}, ${sqlLiteral(name)}, ${sqlLiteral(checksum)});`;
}

function recordVersion(version: string): string {
  return `insert into installation (singleton, version) values (true, ${sqlLiteral(version)})
on conflict (singleton) do update set version = excluded.version, updated_at = clock_timestamp();`;
}
