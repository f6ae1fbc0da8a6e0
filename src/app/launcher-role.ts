/** The role `launcher`, and the launcher as it runs within `up`. */
import { everyone } from '../contract/channels.ts';
import type { LauncherOptions } from '../cli/commands/server/role-commands.ts';
import { engineVersion } from '../engine/engine.ts';
import { makeLog } from '../kernel/log.ts';
import { machine } from '../kernel/process/machine.ts';
import { packageFile } from '../kernel/process/package-files.ts';
import { memoryBytes } from '../kernel/process/machine-memory.ts';
import { all, leftUntil, type Service } from '../kernel/service.ts';
import { controlRetention } from '../control/retention.ts';
import { markHostLost } from '../hosts/host-queries.ts';
import { makeLauncher } from '../launcher/launcher.ts';
import { restEntries, retireHosts } from '../launcher/hosts/host-shutdown.ts';
import type { HostsPort } from '../launcher/hosts/spawning.ts';
import { detachedHosts, type HostProcessOptions, hostsElsewhere } from './host-processes.ts';
import { type Installation, isElsewhere } from './installation.ts';
import { externalAddress, openExternal, readSecretKeys } from './open-installation.ts';
import { prepareDatabases } from './prepare-databases.ts';
import { type Role, RoleEnd, unlessAborted, untilAborted } from './role.ts';

/**
 * The time from SIGTERM to the end of the process, below the 10 s that Docker allows. If no other launcher takes over, hosts have
 * `retireMs` of it to leave. The rest is for the launcher itself, and for closing connections.
 */
const stopMs = 9_500;
const retireMs = 8_000;
const closeMs = 500;

export async function runLauncher({ config, signal, say }: Role, options: LauncherOptions): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'launcher' });
  const address = externalAddress(config);
  const secretKeys = await readSecretKeys(config);
  await unlessAborted(signal, prepareDatabases(config, address, { log }));
  if (signal.aborted) return;
  const installation = await unlessAborted(signal, openExternal(config, log, { role: 'launcher', secretKeys }));
  if (installation === undefined) return;
  const { control, hub } = installation;
  const processes = hostProcessesOf(installation);
  const hosts = options.hosts ? detachedHosts(processes, onHostExit(installation)) : hostsElsewhere(processes);
  const launcher = launcherOf(installation, { hosts, keepsSpares: options.hosts });
  const end = new RoleEnd(signal, stopMs, log);
  try {
    await launcher.start();
    say('Millrace launcher');
    await untilAborted(signal);
  } finally {
    await end.stop(launcher, retireMs);
    const gone = await retireHosts(control, hub, leftUntil(end.deadlineBefore(closeMs))).catch(() => false);
    if (gone) await end.finish('recording that all tenants are stopped', restEntries(control));
    else log.warn('hosts left behind; the next launcher adopts them');
    await end.finish('closing connections', installation.close());
  }
}

/** Passes secrets to hosts explicitly, because this process has erased its own variables. */
export function hostProcessesOf({ config, log }: Pick<Installation, 'config' | 'log'>): HostProcessOptions {
  const { home, databaseUrl, defaultDatabaseUrl, secretKeys } = config;
  const env = {
    MILLRACE_HOME: home,
    ...(databaseUrl === undefined ? {} : { MILLRACE_DATABASE_URL: databaseUrl }),
    ...(defaultDatabaseUrl === undefined ? {} : { MILLRACE_DEFAULT_DATABASE_URL: defaultDatabaseUrl }),
    ...(secretKeys === undefined ? {} : { MILLRACE_SECRET_KEY: secretKeys.join() }),
  };
  return { main: packageFile('dist', 'main.js'), log, memoryMb: config.hostMemoryMb, env };
}

/** Records that a host has ended, so that the launcher need not wait for missing heartbeats. */
export function onHostExit({ control, hub, log }: Installation): (pid: number) => void {
  return (pid) => {
    markHostLost(control, { machine, pid })
      .then((known) => known && hub.send('host_reports', everyone))
      .catch((error: unknown) => log.debug({ err: error }, 'recording the end of a host failed'));
  };
}

/** The launcher, and the work that one process of an installation does beside it. */
export function launcherOf(
  installation: Installation,
  { hosts, keepsSpares = true, alone = false }: { hosts: HostsPort; keepsSpares?: boolean; alone?: boolean },
): Service {
  const { config, control, controlAddress, hub, time, engines, addressOf, log } = installation;
  const launcher = makeLauncher({
    controlAddress,
    allowPooler: config.sessionPooler,
    hub,
    engines,
    hosts,
    addressOf,
    isElsewhere: (row) => isElsewhere(config, row),
    discover: config.discover,
    maxBackgroundWorkers: config.maxBackgroundWorkers,
    embedded: alone,
    mostHosts: maxHosts(config.hostMemoryMb),
    keepsSpares,
    version: engineVersion,
    log,
  });
  return all('launcher', [launcher, controlRetention({ control, time, retention: config.retention, log })]);
}

/** The share of the memory of this machine or container that the hosts of one engine may use together. */
const hostsShare = 1 / 4;

function maxHosts(memoryMb: number): number {
  return Math.max(2, Math.floor((memoryBytes() * hostsShare) / (memoryMb * 2 ** 20)));
}
