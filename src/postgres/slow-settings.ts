/**
 * Settings of a PostgreSQL server that cost Millrace speed and that its own sessions cannot change, each with the remedy.
 * `setUp` of the pools has already changed those that a session can change: `jit` is listed only if that had no effect.
 */
import { type Db, sql } from '../kernel/sql.ts';

export interface SlowSetting {
  readonly name: string;
  readonly value: string;
  /** The cost, and the remedy. */
  readonly advice: string;
}

export interface ServerSpeed {
  /** As the server reports it, such as `15.18 (Debian 15.18-0+deb12u1)`. */
  readonly version: string;
  readonly slow: SlowSetting[];
}

export interface ServerSetting {
  readonly name: string;
  /** With a unit, as in postgresql.conf, such as `32MB`. */
  readonly value: string;
  /** In the setting's base unit, such as pages of 8 kB. */
  readonly setting: string;
}

const minSharedPages = (64 * 1024) / 8;
/** One `up` with its host needs about 20 at rest, and more for each tenant and while it is busy. */
const minConnections = 50;

type Fault = (setting: string) => string | undefined;

const whenOff =
  (advice: string): Fault =>
  (setting) =>
    setting === 'off' ? advice : undefined;

const faults: Readonly<Record<string, Fault>> = {
  jit: (setting) =>
    setting === 'on'
      ? "PostgreSQL compiles plans at each execution. Millrace's sessions turn this off, but something between turns it on again: set jit = off on the server or in the pooler."
      : undefined,
  autovacuum: whenOff('Dead rows and old statistics make every statement slower with time: set autovacuum = on.'),
  track_counts: whenOff('Autovacuum finds no table to clean without it: set track_counts = on.'),
  shared_buffers: (setting) =>
    Number(setting) < minSharedPages
      ? 'The tables do not fit into it: set shared_buffers to 128MB at least, and restart PostgreSQL.'
      : undefined,
  max_connections: (setting) =>
    Number(setting) < minConnections
      ? 'Processes of Millrace wait for each other’s connections: set max_connections to 100 at least, and restart PostgreSQL.'
      : undefined,
  log_statement: (setting) =>
    setting === 'all' ? 'Every statement is written to the log: set log_statement = none, or ddl.' : undefined,
  log_min_duration_statement: (setting) =>
    setting === '0'
      ? 'Every statement is written to the log: set log_min_duration_statement to 100ms, or -1.'
      : undefined,
  ...Object.fromEntries(
    ['indexscan', 'bitmapscan', 'tidscan', 'nestloop', 'hashjoin', 'sort', 'hashagg', 'material'].map((node) => [
      `enable_${node}`,
      whenOff(`The planner avoids the plans that Millrace relies on: set enable_${node} = on.`),
    ]),
  ),
};

export function findSlowSettings(settings: readonly ServerSetting[]): SlowSetting[] {
  return settings.flatMap(({ name, value, setting }) => {
    const advice = faults[name]?.(setting);
    return advice === undefined ? [] : [{ name, value, advice }];
  });
}

/** The settings of a session of this pool. */
export async function readServerSpeed(db: Db): Promise<ServerSpeed> {
  const rows = await db.rows<{ name: string; value: string; setting: string; version: string }>(sql`
    select name, current_setting(name) as value, setting, current_setting('server_version') as version
      from pg_settings
     where name = any (${Object.keys(faults)})
     order by name`);
  return { version: rows[0]?.version ?? '', slow: findSlowSettings(rows) };
}
