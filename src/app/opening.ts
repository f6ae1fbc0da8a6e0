/** How a role that is a process of its own finds its database, and opens the installation there. */
import type { Config } from '../config.ts';
import { MillraceError } from '../errors.ts';
import type { Log } from '../kernel/log.ts';
import { type Address, addressOfUrl } from '../postgres/address.ts';
import { makeHome } from '../postgres/home.ts';
import { type Installation, type InstallationOptions, openInstallation } from './installation.ts';
import { secretKeyOf } from './secret-files.ts';

export function externalAddress({ databaseUrl }: Config): Address {
  if (databaseUrl !== undefined) return addressOfUrl(databaseUrl);
  throw new MillraceError(
    'bad_configuration',
    'set MILLRACE_DATABASE_URL to the control database, or start everything at once with `millrace up`',
  );
}

export async function openExternal(
  config: Config,
  log: Log,
  role: string,
  more: Pick<InstallationOptions, 'queryTimeoutMs' | 'lockTimeoutMs'> = {},
): Promise<Installation> {
  const controlAddress = externalAddress(config);
  const home = await makeHome(config.home);
  return openInstallation({
    config,
    log,
    role,
    controlAddress,
    secretKeys: await secretKeys(config, home),
    poolSize: 10,
    ...more,
  });
}

export async function secretKeys({ secretKeys: given }: Config, home: string): Promise<readonly [string, ...string[]]> {
  const [first, ...older] = given ?? [];
  return first === undefined ? [await secretKeyOf(home)] : [first, ...older];
}
