/**
 * Installing and upgrading as one SQL script, for whoever changes databases by a tool of their own: the same locks, the
 * same migrations, the same records as `install` and `upgrade`, and no launcher has to be told. It refuses, whole, a
 * database that is not as it expects.
 */
import { MillraceError } from '../../errors.ts';
import { locks } from '../../postgres/locks.ts';
import type { Migration } from '../../postgres/migrate.ts';

export interface ScriptWish {
  /** Where the tenant is; undefined: Millrace is not installed. */
  readonly from: { readonly version: string; readonly migrations: readonly Migration[] } | undefined;
  readonly to: { readonly version: string; readonly migrations: readonly Migration[] };
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
    'commit;',
  ];
  return `${parts.join('\n\n')}\n`;
}

function refuseOtherPast(from: ScriptWish['from'], to: ScriptWish['to']): void {
  const differs = from?.migrations.find((each, i) => to.migrations[i]?.checksum !== each.checksum);
  if (from === undefined || differs === undefined) return;
  throw new MillraceError(
    'conflict',
    `there is no way from ${from.version} to ${to.version}: ${to.version} does not have ${differs.name} as it is there`,
  );
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
  if not exists (select from millrace.installation where version = ${literal(version)})
     or (select count(*) from millrace.migration) <> ${migrations} then
    raise exception 'this database is not at version %: it is at %', ${literal(version)},
      (select version from millrace.installation);
  end if;
end $$;`;
}

function applied({ number, name, text, checksum }: Migration): string {
  return `-- ${name}\n${text.trimEnd()}\n;
insert into migration (number, name, checksum) values (${number}, ${literal(name)}, ${literal(checksum)});`;
}

function recordVersion(version: string): string {
  return `insert into installation (singleton, version) values (true, ${literal(version)})
on conflict (singleton) do update set version = excluded.version, updated_at = clock_timestamp();`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
