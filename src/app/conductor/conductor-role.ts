/** The role `conductor`: drives executions of flows, of all tenants. It has no listener, and does not load the code of the gateway's pages. */
import type { ConductorOptions } from '../../cli/commands/server/role-commands.ts';
import { makeLog } from '../../kernel/log.ts';
import { findSeparation } from '../../runtimes/users/task-separation.ts';
import { conductorService, fileFunctions, namesOf } from './conductor-service.ts';
import { externalAddress, openExternal, readSecretKeys } from '../open-installation.ts';
import { prepareControl } from '../prepare-databases.ts';
import { type Role, RoleEnd, unlessAborted, untilAborted } from '../role.ts';

/** After this time without an answer, the network counts as lost and a new connection is opened. */
const lostMs = 10_000;
/** The time from SIGTERM to the end of the process; tenants have 3 s of it to commit what is under way. */
const stopMs = 5_000;
const closeMs = 1_000;

export async function runConductor({ config, signal, say }: Role, options: ConductorOptions): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'conductor' });
  const address = externalAddress(config);
  const secretKeys = await readSecretKeys(config);
  await unlessAborted(signal, prepareControl(address));
  if (signal.aborted) return;
  const opening = { role: 'conductor', secretKeys, queryTimeoutMs: lostMs };
  const installation = await unlessAborted(signal, openExternal(config, log, opening));
  if (installation === undefined) return;
  const functions = fileFunctions(installation, options.functions);
  const conductor = conductorService({
    installation,
    functions,
    maxCalls: config.conductorCalls,
    apiUrl: () => apiUrlOf(config),
    isAlone: true,
    signal,
  });
  const end = new RoleEnd(signal, stopMs, log);
  try {
    await conductor.start().catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    const names = namesOf(functions);
    say(names === undefined ? 'Millrace conductor' : `Millrace conductor, with the functions ${names}`);
    if (names !== undefined) say(`  tasks     ${(await findSeparation(config.taskUser)).about}`);
    await untilAborted(signal);
  } finally {
    await end.stop(conductor, closeMs);
    await end.finish('closing connections', installation.close());
  }
}

/** Where people reach the API: this process has no listener. */
export function apiUrlOf({ publicUrl, url, host, port }: Role['config']): string {
  return publicUrl ?? url ?? `http://${host}:${port}`;
}
