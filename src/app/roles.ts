/** The roles that stand on a database, each as one long-running function: set up, run until the signal aborts, tidy up. */
import type { Config } from '../config.ts';
import { engineVersion } from '../engine/engine.ts';
import { MillraceError } from '../errors.ts';
import { makeLog, type Log } from '../kernel/log.ts';
import { all } from '../kernel/service.ts';
import { controlRetention } from '../launcher/control-retention.ts';
import { makeHost } from '../launcher/host.ts';
import { type Address, addressOfUrl } from '../postgres/address.ts';
import { makeHome } from '../postgres/home.ts';
import type { HostOrder } from './host-process.ts';
import { type Installation, openInstallation, prepareDatabases } from './installation.ts';
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
export async function runHost({ config, signal }: Role, order: Promise<HostOrder> | undefined): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'host' });
  const told = order && (await Promise.race([order, untilAborted(signal)]));
  if (signal.aborted) return;
  if (told === undefined) await prepareDatabases(config, externalAddress(config));
  const installation = await open({ ...config, ...told }, log, 'host');
  const { control, loader, addressOf, statuses, time, telemetry } = installation;
  const host = all('host', [
    makeHost({
      control,
      loader,
      addressOf,
      statuses,
      time,
      telemetry,
      version: engineVersion,
      allowPooler: config.sessionPooler,
      log,
    }),
    controlRetention({ control, time, retention: config.retention, log }),
  ]);
  try {
    await host.start();
    await untilAborted(signal);
  } finally {
    await host.stop();
    await installation.close();
  }
}
