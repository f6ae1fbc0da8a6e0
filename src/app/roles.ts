/** The roles that stand on a database, each as one long-running function: set up, run until the signal aborts, tidy up. */
import { hostname } from 'node:os';
import type { HostOptions } from '../cli/role-commands.ts';
import type { Config } from '../config.ts';
import { engineVersion } from '../engine/engine.ts';
import { MillraceError } from '../errors.ts';
import { makeLog, type Log } from '../kernel/log.ts';
import { packageFile } from '../kernel/package-files.ts';
import { all, type Service } from '../kernel/service.ts';
import { controlRetention } from '../launcher/control-retention.ts';
import { makeHost, type HostOptions as HostSettings } from '../launcher/host.ts';
import { hostIsLost } from '../launcher/host-queries.ts';
import { makeLauncher } from '../launcher/launcher.ts';
import { retireHosts } from '../launcher/leaving.ts';
import { type Address, addressOfUrl } from '../postgres/address.ts';
import { makeHome } from '../postgres/home.ts';
import {
  detachedHosts,
  type HostOrder,
  type HostProcesses,
  type HostProcessOptions,
  registered,
} from './host-processes.ts';
import { type Installation, isElsewhere, openInstallation, prepareControl, prepareDatabases } from './installation.ts';
import { type Role, untilAborted } from './role.ts';
import { makeServing } from './serving.ts';
import { rootKeyOf, secretKeyOf } from './secret-files.ts';

function externalAddress({ databaseUrl }: Config): Address {
  if (databaseUrl !== undefined) return addressOfUrl(databaseUrl);
  throw new MillraceError(
    'bad_configuration',
    'set MILLRACE_DATABASE_URL to the control database, or start everything at once with `millrace up`',
  );
}

async function open(config: Config, log: Log, role: string): Promise<Installation> {
  const controlAddress = externalAddress(config);
  const home = await makeHome(config.home);
  return openInstallation({
    config,
    log,
    role,
    controlAddress,
    secretKeys: await secretKeys(config, home),
    poolSize: 10,
  });
}

export async function secretKeys({ secretKeys: given }: Config, home: string): Promise<readonly [string, ...string[]]> {
  const [first, ...older] = given ?? [];
  return first === undefined ? [await secretKeyOf(home)] : [first, ...older];
}

export async function runApi({ config, signal, say }: Role): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'api' });
  await prepareDatabases(config, externalAddress(config));
  const installation = await open(config, log, 'api');
  const rootKey = config.rootKey ?? (await rootKeyOf(config.home));
  const serving = makeServing({ installation, rootKey, healthy: async () => true });
  try {
    await serving.start();
    say(`Millrace API at ${serving.url()}`);
    await untilAborted(signal);
  } finally {
    await serving.stop();
    await installation.close();
  }
}

/** Under `up`, the order says where the database is, and that it is ready. */
export async function runHost(
  { config, signal }: Role,
  { engine: version = engineVersion }: HostOptions,
  order: Promise<HostOrder> | undefined,
): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'host' });
  const told = order && (await Promise.race([order, untilAborted(signal)]));
  if (signal.aborted) return;
  if (told === undefined) await prepareControl(externalAddress(config));
  const installation = await open({ ...config, ...told }, log, 'host');
  const host = makeHost({ ...installation, ...hostSettings(config), version });
  try {
    await host.start();
    process.send?.(registered);
    const end = await Promise.race([host.ended, untilAborted(signal)]);
    if (end?.asked) log.info({ host: host.id() }, `the host ends: ${end.reason}`);
    else if (end !== undefined) throw new MillraceError('internal', `the host ended: ${end.reason}`);
  } finally {
    await host.stop();
    await installation.close();
  }
}

function hostSettings({
  hostMemoryMb,
  sessionPooler,
}: Config): Pick<HostSettings, 'memoryLimit' | 'allowPooler' | 'poolSize'> {
  // beside its heap a process has code, buffers and what the heap leaves behind
  return { memoryLimit: hostMemoryMb * 1.5 * 2 ** 20, allowPooler: sessionPooler, poolSize: 10 };
}

/** Without a launcher to follow, hosts are given so long to leave. */
const retireMs = 8_000;

export async function runLauncher({ config, signal, say }: Role): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'launcher' });
  const address = externalAddress(config);
  await prepareDatabases(config, address);
  const installation = await open(config, log, 'launcher');
  const { control, hub } = installation;
  const launcher = launcherOf(installation, {
    hosts: detachedHosts(hostProcessesOf(installation), onHostExit(installation)),
  });
  try {
    await launcher.start();
    say('Millrace launcher');
    await untilAborted(signal);
  } finally {
    await launcher.stop();
    const gone = await retireHosts(control, hub, retireMs).catch(() => false);
    if (!gone) log.warn('hosts are left behind; the next launcher adopts them');
    await installation.close();
  }
}

export function hostProcessesOf({ config, log }: Pick<Installation, 'config' | 'log'>): HostProcessOptions {
  const env = { MILLRACE_HOME: config.home };
  return { main: packageFile('dist', 'main.js'), log, memoryMb: config.hostMemoryMb, env };
}

/** The launcher need not wait until a host that is known to be gone has been silent for long enough. */
export function onHostExit({ control, hub, log }: Installation): (pid: number) => void {
  return (pid) => {
    hostIsLost(control, { machine: hostname(), pid })
      .then((known) => known && hub.send('launcher', 'words'))
      .catch((error: unknown) => log.debug({ err: error }, 'a host is gone, and this could not be written down'));
  };
}

/** The launcher, and what one process of an installation does beside it. */
export function launcherOf(
  installation: Installation,
  { hosts, alone = false }: { hosts: HostProcesses; alone?: boolean },
): Service {
  const { config, control, controlAddress, hub, time, engines, addressOf, log } = installation;
  const launcher = makeLauncher({
    controlAddress,
    allowPooler: config.sessionPooler,
    hub,
    time,
    engines,
    hosts,
    addressOf,
    isElsewhere: (row) => isElsewhere(config, row),
    discover: config.discover,
    maxBackgroundWorkers: config.maxBackgroundWorkers,
    embedded: alone,
    version: engineVersion,
    log,
  });
  return all('launcher', [launcher, controlRetention({ control, time, retention: config.retention, log })]);
}
