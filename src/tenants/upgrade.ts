/**
 * Upgrades a tenant to another version of the engine, in one transaction. The RESTART is sent before the first statement,
 * so that the old scheduler ends as the transaction begins. A commit starts the new engine, a rollback the old one. Between
 * the two, neither engine executes anything.
 */
import type { ClientBase } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { MillraceError } from '../errors.ts';
import { checkpoint } from './checkpoints.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { compareVersions } from '../kernel/text/version.ts';
import { isEngines } from '../postgres/drained.ts';
import { onConnection } from './drained-work.ts';
import type { SentMessage } from '../control/messages.ts';
import { isVersionRecorded } from '../launcher/version-audit.ts';
import { adoptCommand } from './advice.ts';
import { awaitReaders } from './await-readers.ts';
import { startMs } from './create.ts';
import { isUncertain, migrateTenant, migrationFailed, readVersion } from './install.ts';
import {
  type Actor,
  engineFor,
  exclusively,
  requireTenant,
  announceChange,
  type Life,
  outcome,
  record,
  makeRestartHooks,
} from './life.ts';
import type { LifeRow } from './queries.ts';
import { usualTarget } from './target.ts';

export interface UpgradeWish extends Actor {
  /** Default: see `usualTarget`. */
  readonly to?: string | undefined;
}

export interface Upgrade {
  readonly tenantId: string;
  readonly from: string;
  readonly to: string;
  /** Applied, or to be applied. */
  readonly migrations: readonly string[];
  /** In a plan: the number of connections of engines that would have to leave. */
  readonly sessions: number | null;
  /** Null if nothing was done. */
  readonly message: SentMessage | null;
}

interface Plan {
  readonly row: LifeRow;
  readonly from: string;
  readonly engine: Engine;
}

/** Returns what an upgrade would do. Changes nothing, and takes no lock that others wait for. */
export async function planUpgrade(life: Life, name: string, wish: Omit<UpgradeWish, 'actor'>): Promise<Upgrade> {
  const { row, from, engine } = await plan(life, name, wish);
  const { migrations, sessions } = await onConnection(life.addressOf(row), async (client) => ({
    migrations: await engine.pending(client),
    sessions: await engineSessions(client),
  })).catch((error: unknown) => {
    throw migrationFailed(error, name);
  });
  return { tenantId: row.id, from, to: engine.version, migrations, sessions, message: null };
}

export async function upgradeTenant(life: Life, name: string, wish: UpgradeWish): Promise<Upgrade> {
  const done = await exclusively(life, [name], async () => {
    const planned = await plan(life, name, wish);
    const { row, from, engine } = planned;
    const nothing = { tenantId: row.id, from, to: engine.version, migrations: [], sessions: null, messageId: null };
    return from === engine.version && !(await lacksMigration(life, planned))
      ? nothing
      : migrate(life, planned, wish.actor);
  });
  const { messageId, ...upgrade } = done;
  if (messageId === null) return { ...upgrade, message: null };
  return { ...upgrade, message: (await outcome(life, done.tenantId, messageId, startMs)).message };
}

/** Whether migrations of the recorded version are missing: a script was interrupted, or a row was edited. */
async function lacksMigration(life: Life, { row, engine }: Plan): Promise<boolean> {
  const pending = await onConnection(life.addressOf(row), (client) => engine.pending(client)).catch(
    (error: unknown) => {
      throw migrationFailed(error, row.name);
    },
  );
  return pending.length > 0;
}

async function plan(life: Life, name: string, { to }: Omit<UpgradeWish, 'actor'>): Promise<Plan> {
  const row = await requireTenant(life, name);
  const named = to === undefined ? undefined : await engineFor(life, to, 'body.to');
  const found = await readVersion(life, row);
  if (found === 'gone')
    throw new MillraceError('conflict', `the database ${row.database} of tenant ${name} does not exist`);
  const { version: from } = found;
  if (from === null)
    throw new MillraceError(
      'conflict',
      `Millrace is not installed in the database ${row.database}; \`${adoptCommand(name, row.database)}\` installs it`,
    );
  const engine = named ?? (await engineFor(life, (await usualTarget(life, from)) ?? life.version, 'body.to'));
  if (compareVersions(engine.version, from) < 0)
    throw new MillraceError(
      'conflict',
      `tenant ${name} is at ${from}; ${engine.version} is older, and there is no way back`,
    );
  return { row, from, engine };
}

async function migrate(life: Life, { row, from, engine }: Plan, actor: string) {
  const to = engine.version;
  const lockMs = await awaitReaders(life, row);
  const hooks = makeRestartHooks({ ...life, lockMs }, row, { cause: `upgrade to ${to}`, actor });
  const migrations = await migrateTenant(life.addressOf(row), engine, hooks)
    .then((applied) => {
      checkpoint('tenant.upgraded');
      return applied;
    })
    .catch(async (error: unknown) => {
      if (isUncertain(error)) throw uncertain(row, to, error);
      const failed = migrationFailed(error, row.name);
      const why = failed instanceof Error ? failed.message : String(failed);
      // the caller must get the cause of the failure, even if the event cannot be written
      await noteFailure(life, row, { from, to, why, actor }).catch(() => {});
      throw failed;
    })
    .finally(() => announceChange(life, row.id));
  await noteUpgrade(life, row, { from, to, migrations, actor });
  return { tenantId: row.id, from, to, migrations, sessions: null, messageId: hooks.messageId() };
}

function uncertain({ name }: LifeRow, to: string, cause: unknown): MillraceError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const detail = `the connection to tenant ${name} was lost during its upgrade (${why}); \`millrace tenant show ${name}\` says whether it is at ${to}`;
  return new MillraceError('tenant_unavailable', detail, { cause });
}

async function noteUpgrade(
  life: Life,
  row: LifeRow,
  { actor, ...body }: Actor & { from: string; to: string; migrations: string[] },
): Promise<void> {
  await life.control.transaction(async (tx) => {
    const isRecorded = await isVersionRecorded(tx, row.id, body.to);
    // for a running tenant, the launcher records the version when its scheduler starts
    await tx.exec(sql`update launch set version = ${body.to} where tenant_id = ${row.id} and state = 'DISABLED'`);
    if (isRecorded) return;
    await record(life, tx, { type: 'tenant.upgraded', tenantId: row.id, body: { name: row.name, ...body }, actor });
  });
}

async function noteFailure(
  life: Life,
  { id, name }: LifeRow,
  { actor, ...body }: Actor & { from: string; to: string; why: string },
): Promise<void> {
  const event = { type: 'tenant.upgrade_failed', tenantId: id, body: { name, ...body }, actor };
  await life.control.transaction((tx) => record(life, tx, event));
}

/** Counts the connections of engines to the client's database. */
async function engineSessions(client: ClientBase): Promise<number> {
  const { sessions } = await onClient(client).one<{ sessions: number }>(sql`
    select count(*)::integer as sessions
      from pg_locks l
     where ${isEngines} and l.database = (select oid from pg_database where datname = current_database())`);
  return sessions;
}
