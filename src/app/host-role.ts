/** The role `host`. It loads nothing of the gateway and the launcher: it is sooner there, and smaller, for it. */
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
import { externalAddress, openExternal, readSecretKeys } from './opening.ts';
import { prepareControl } from './preparation.ts';
import { type Role, RoleEnd, unlessAborted, untilAborted } from './role.ts';

/** Without an answer for so long, the network is gone: on to a new connection. */
const lostMs = 10_000;
/** What is said of one tenant, whose row somebody has locked, does not keep the rest waiting for longer. */
const lockedMs = 1_000;
/** Of the server's connections, what busy schedulers of a host may have beside the one that each of them keeps. */
const busyShare = 1 / 40;

/**
 * Processor time, in milliseconds, that a scheduler may keep the process from all others. Its neighbours are late by this
 * and by the time until they run in another host; together that shall be 2 s at most. One turn of the event loop may have
 * something to do for each tenant, so that the limit grows with their number.
 */
const blockedMs = 250;
const blockedMsPerTenant = 2;

/** From SIGTERM to the end of the process: a scheduler has 5 s of it to stop. And what is left to close connections. */
const stopMs = 8_000;
const closeMs = 500;

/** Under `up`, the order says where the database is, and that it is ready. */
export async function runHost(
  { config, signal }: Role,
  { engine: version = engineVersion, onDemand }: HostOptions,
  order: Promise<HostOrder> | undefined,
): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'host' });
  const told = order && (await Promise.race([order, untilAborted(signal)]));
  if (signal.aborted) return;
  const address = externalAddress({ ...config, ...told });
  const secretKeys = await readSecretKeys(config);
  // whoever starts hosts has prepared what they stand on
  if (!onDemand) await unlessAborted(signal, prepareControl(address));
  if (signal.aborted) return;
  const opening = { role: 'host', secretKeys, queryTimeoutMs: lostMs, lockTimeoutMs: lockedMs };
  const installation = await unlessAborted(signal, openExternal({ ...config, ...told }, log, opening));
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
    if (cause?.asked) log.info({ host: host.id() }, `the host ends: ${cause.reason}`);
    else if (cause !== undefined) throw new MillraceError('internal', `the host ended: ${cause.reason}`);
  } finally {
    await end.stop(host, closeMs);
    await end.finish('closing connections', installation.close());
  }
}

/** A host that its tenants share ends when one of them blocks it. A tenant that is alone harms nobody. */
function endWhenBlocked(): (tenants: number) => void {
  const msg = 'a scheduler blocks the host, and the host ends: its other tenants start in another host';
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
