/** The role `api`. */
import { makeLog } from '../kernel/log.ts';
import { externalAddress, openExternal } from './opening.ts';
import { prepareDatabases } from './preparation.ts';
import { type Role, unlessAborted, untilAborted } from './role.ts';
import { rootKeyOf } from './secret-files.ts';
import { makeServing } from './serving.ts';

export async function runApi({ config, signal, say }: Role): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'api' });
  await unlessAborted(signal, prepareDatabases(config, externalAddress(config), { log }));
  if (signal.aborted) return;
  const installation = await unlessAborted(signal, openExternal(config, log, 'api'));
  if (installation === undefined) return;
  const rootKey = config.rootKey ?? (await rootKeyOf(config.home));
  const serving = makeServing({ installation, rootKey });
  try {
    await serving.start();
    say(`Millrace API at ${serving.url()}`);
    await untilAborted(signal);
  } finally {
    await serving.stop();
    await installation.close();
  }
}
