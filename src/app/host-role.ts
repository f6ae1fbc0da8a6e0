/** The role `host`. It does not load the code of the gateway and the launcher, so that it starts faster and is smaller. */
import type { HostOptions } from '../cli/commands/server/role-commands.ts';
import type { Config } from '../config.ts';
import { engineVersion } from '../engine/engine.ts';
import { MillraceError } from '../errors.ts';
import { makeLog } from '../kernel/log.ts';
import { LoopWatchdog } from '../kernel/process/loop-watchdog.ts';
import { type HostOptions as HostSettings, makeHost } from '../hosts/host.ts';
import { awaitEngine } from '../hosts/host-engine.ts';
import { hostMemory } from './host-memory.ts';
import { type HostOrder, registered } from './host-order.ts';
import { budgetOf, isElsewhere } from './installation.ts';
import { externalAddress, openExternal, readSecretKeys } from './open-installation.ts';
import { prepareControl } from './prepare-databases.ts';
import { type Role, RoleEnd, unlessAborted, untilAborted } from './role.ts';

/** After this time without an answer, the network counts as lost and a new connection is opened. */
const lostMs = 10_000;
/** A report about a tenant whose row another session has locked does not delay the other reports for longer. */
const lockedMs = 1_000;
/** The share of the server's connections for busy schedulers of a host, besides the one that each scheduler keeps. */
const busyShare = 1 / 40;

/**
 * Processor time, in milliseconds, for which a scheduler may block the process. Its neighbours are late by this time plus the
 * time until they run in another host; together that should be 2 s at most. One turn of the event loop may include work for
 * each tenant, so the limit grows with their number.
 */
const blockedMs = 250;
const blockedMsPerTenant = 2;

/**
 * The time from SIGTERM to the end of the process (a scheduler has 5 s of it to stop), and the part reserved for closing
 * connections.
 */
const stopMs = 8_000;
const closeMs = 500;

/** Under `up`, the order arrives once the database is ready, and has its address. */
export async function runHost(
  { config, signal }: Role,
  { engine: version = engineVersion, onDemand }: HostOptions,
  order: Promise<HostOrder> | undefined,
): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'host' });
  const received = order && (await Promise.race([order, untilAborted(signal)]));
  if (signal.aborted) return;
  const address = externalAddress({ ...config, ...received });
  const secretKeys = await readSecretKeys(config);
  // a host that is started on demand has a prepared control database: the process that started it prepared it
  if (!onDemand) await unlessAborted(signal, prepareControl(address));
  if (signal.aborted) return;
  const opening = { role: 'host', secretKeys, queryTimeoutMs: lostMs, lockTimeoutMs: lockedMs };
  const installation = await unlessAborted(signal, openExternal({ ...config, ...received }, log, opening));
  if (installation === undefined) return;
  const host = makeHost({
    ...installation,
    ...hostSettings(config, installation.connections),
    isElsewhere: (row) => isElsewhere(config, row),
    version,
    stays: !onDemand,
    signal,
    onTenants: endWhenBlocked(),
  });
  const end = new RoleEnd(signal, stopMs, log);
  try {
    await awaitEngine(installation.engines, version, { waits: !onDemand, signal, log });
    if (signal.aborted) return;
    await host.start().catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (signal.aborted) return;
    process.send?.(registered);
    const cause = await Promise.race([host.ended, untilAborted(signal)]);
    if (cause?.asked) log.info({ host: host.id(), reason: cause.reason }, 'host ends');
    else if (cause !== undefined) throw new MillraceError('internal', `the host ended: ${cause.reason}`);
  } finally {
    await end.stop(host, closeMs);
    await end.finish('closing connections', installation.close());
  }
}

/** A host with several tenants ends when one of them blocks it. A tenant that is alone in its host disturbs no other. */
function endWhenBlocked(): (tenants: number) => void {
  const msg = 'host blocked by a scheduler; it ends, and its other tenants start in another host';
  const lastWords = `${JSON.stringify({ level: 50, role: 'host', pid: process.pid, msg })}\n`;
  let watchdog: LoopWatchdog | undefined;
  return (tenants) => {
    const limitMs = blockedMs + blockedMsPerTenant * tenants;
    if (tenants > 1) {
      watchdog ??= new LoopWatchdog({ limitMs, lastWords });
      watchdog.limit(limitMs);
    } else if (watchdog !== undefined) {
      void watchdog.stop();
      watchdog = undefined;
    }
  };
}

function hostSettings(
  { hostMemoryMb, sessionPooler }: Config,
  connections: number,
): Pick<HostSettings, 'heapLimit' | 'memoryLimit' | 'allowPooler' | 'poolSize' | 'budget'> {
  const { heapLimit, memoryLimit } = hostMemory(hostMemoryMb);
  return {
    heapLimit,
    memoryLimit,
    allowPooler: sessionPooler,
    poolSize: 10,
    budget: budgetOf(connections * busyShare),
  };
}
