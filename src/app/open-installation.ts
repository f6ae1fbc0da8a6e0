/** Reads the secrets of a role, finds its database, and opens the installation there. */
import type { Config } from '../config.ts';
import { MillraceError } from '../errors.ts';
import type { Log } from '../kernel/log.ts';
import { type Address, addressOfUrl } from '../postgres/address.ts';
import { makeHome } from '../postgres/embedded/home.ts';
import { type Installation, type InstallationOptions, openInstallation } from './installation.ts';
import { checkSecretFiles, rootKeyOf, secretKeyOf } from './secret-files.ts';

export function externalAddress({ databaseUrl }: Config): Address {
  if (databaseUrl !== undefined) return addressOfUrl(databaseUrl);
  throw new MillraceError(
    'bad_configuration',
    'set MILLRACE_DATABASE_URL to the control database, or start everything at once with `millrace up`',
  );
}

type Patience = Pick<InstallationOptions, 'queryTimeoutMs' | 'lockTimeoutMs'>;

export function openExternal(
  config: Config,
  log: Log,
  opening: { role: string; secretKeys: SecretKeys } & Patience,
): Promise<Installation> {
  return openInstallation({ config, log, controlAddress: externalAddress(config), poolSize: 10, ...opening });
}

type SecretKeys = readonly [string, ...string[]];

/** From the environment, or from the home's file. Read first, because a process with a faulty secret must not start. */
export async function readSecretKeys({ secretKeys: given, home: path }: Config): Promise<SecretKeys> {
  const home = await makeHome(path);
  await checkSecretFiles(home);
  const [first, ...older] = given ?? [];
  return first === undefined ? [await secretKeyOf(home)] : [first, ...older];
}

export async function readRootKey({ rootKey, home }: Config): Promise<string> {
  return rootKey ?? rootKeyOf(await makeHome(home));
}
