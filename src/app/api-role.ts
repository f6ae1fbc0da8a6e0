/** The role `api`. */
import { makeLog } from '../kernel/log.ts';
import { externalAddress, openExternal, readRootKey, readSecretKeys } from './open-installation.ts';
import { prepareDatabases } from './prepare-databases.ts';
import { type Role, RoleEnd, unlessAborted, untilAborted } from './role.ts';
import { makeServing } from './serving.ts';

/** The time from SIGTERM to the end of the process, and the part of it that is reserved for closing connections. */
const stopMs = 5_000;
const closeMs = 500;

export async function runApi({ config, signal, say }: Role): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'api' });
  const address = externalAddress(config);
  const [secretKeys, rootKey] = [await readSecretKeys(config), await readRootKey(config)];
  await unlessAborted(signal, prepareDatabases(config, address, { log }));
  if (signal.aborted) return;
  const installation = await unlessAborted(signal, openExternal(config, log, { role: 'api', secretKeys }));
  if (installation === undefined) return;
  const serving = makeServing({ installation, rootKey });
  const end = new RoleEnd(signal, stopMs, log);
  try {
    await serving.start();
    say(`Millrace API at ${serving.url()}`);
    await untilAborted(signal);
  } finally {
    await end.stop(serving, closeMs);
    await end.finish('closing connections', installation.close());
  }
}
