/**
 * Keeps one tenant's scheduler running in this host: opens the tenant, takes its `singleton` lock (I5), starts the
 * engine's scheduler, and starts over when the lock's connection is lost. Every state that is not STARTED has a reason.
 */
import { Client } from 'pg';
import { MillraceError } from '../errors.ts';
import { checkpoint } from '../kernel/checkpoint.ts';
import type { Log } from '../kernel/log.ts';
import { pause, type Service, steady } from '../kernel/service.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { type Address, clientConfig } from '../postgres/address.ts';
import { locks } from '../postgres/locks.ts';
import { guardVersion, setUp } from '../postgres/pool.ts';
import type { SchedulerState, TenantRow } from './control-queries.ts';
import type { Loader, OpenTenant } from './loader.ts';

export interface TenantSchedulerOptions {
  readonly row: TenantRow;
  readonly loader: Loader;
  readonly address: Address;
  readonly allowPooler: boolean;
  readonly log: Log;
  readonly note: (state: Pick<SchedulerState, 'state' | 'reason' | 'engine'>) => Promise<void>;
}

const lockEveryMs = 250;
const longestWordMs = 1_000;

export function tenantScheduler(options: TenantSchedulerOptions): Service {
  const { row, log, note } = options;
  const tell = (reason: string): Promise<void> => note({ state: 'ENABLED', reason, engine: '' }).catch(() => {});
  return steady(
    `scheduler of ${row.name}`,
    async (signal) => {
      const tenant = await options.loader.open(row);
      const lock = await holdSingleton(options, tenant, signal);
      if (lock === undefined) return;
      checkpoint('scheduler.locked');
      try {
        await runUntilLost(options, tenant, lock, signal);
      } finally {
        await lock.end().catch(() => {});
      }
      const reason = signal.aborted ? 'it was stopped' : 'the connection that held its lock was lost';
      // without a database, nobody waits long to say so
      await Promise.race([tell(reason), pause(longestWordMs)]);
    },
    (error) => {
      log.warn({ err: error, tenant: row.name }, 'a scheduler is not running; trying again');
      void tell(
        error instanceof MillraceError ? error.message : 'its scheduler failed to start; the log has the details',
      );
    },
  );
}

async function runUntilLost(
  options: TenantSchedulerOptions,
  { engine, ctx }: OpenTenant,
  lock: Client,
  signal: AbortSignal,
): Promise<void> {
  const lost = new Promise<void>((resolve) => {
    lock.once('end', () => resolve());
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const scheduler = engine.scheduler(ctx);
  await scheduler.start();
  try {
    await options.note({ state: 'STARTED', reason: null, engine: engine.version });
    if (!signal.aborted) await lost;
  } finally {
    await scheduler.stop();
  }
  if (!signal.aborted)
    options.log.warn({ tenant: options.row.name }, 'the connection that held the singleton lock is lost');
}

/** The lock lives as long as its connection. `undefined` when the signal aborted first. */
async function holdSingleton(
  options: TenantSchedulerOptions,
  { engine }: OpenTenant,
  signal: AbortSignal,
): Promise<Client | undefined> {
  const client = new Client(clientConfig(options.address, `millrace scheduler ${options.row.name}`));
  client.on('error', () => {});
  await client.connect();
  try {
    const guard = guardVersion(engine.version);
    await setUp(client, {
      address: options.address,
      schema: 'millrace',
      application: '',
      allowPooler: options.allowPooler,
      onOpen: guard,
    });
    for (let told = false; !signal.aborted; told = true) {
      if (await tryLock(client)) return client;
      if (!told)
        await options.note({
          state: 'ALLOCATED',
          reason: 'another scheduler of this tenant is still running',
          engine: engine.version,
        });
      await pause(lockEveryMs, signal);
    }
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
  await client.end().catch(() => {});
  return undefined;
}

async function tryLock(client: Client): Promise<boolean> {
  const { locked } = await onClient(client).one<{ locked: boolean }>(sql`
    select pg_try_advisory_lock(${locks.singleton[0]}::integer, ${locks.singleton[1]}::integer) as locked`);
  return locked;
}
