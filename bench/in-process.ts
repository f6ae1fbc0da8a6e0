/**
 * `up` assembled within the benchmark's own process, from the same parts, so that traffic between its worker and its
 * gateway can be timed to the microsecond. The host is a process of its own, as under `up`.
 */
import { ChildHosts } from '../src/app/child-hosts.ts';
import { openInstallation } from '../src/app/installation.ts';
import { prepareDatabases } from '../src/app/prepare-databases.ts';
import { hostProcessesOf, launcherOf, onHostExit } from '../src/app/launcher-role.ts';
import { readRootKey, readSecretKeys } from '../src/app/open-installation.ts';
import { makeServing } from '../src/app/serving.ts';
import { readConfig } from '../src/config.ts';
import { engineVersion } from '../src/engine/engine.ts';
import { inProcessCaller } from '../src/gateway/access/worker-access.ts';
import { makeLog } from '../src/kernel/log.ts';
import type { Address } from '../src/postgres/address.ts';
import { type Carry, inProcess } from '../src/worker/transport.ts';
import { atEnd } from './ending.ts';

export interface InProcess {
  /** The transport for a worker in this process. */
  readonly carry: Carry;
  stop(): Promise<void>;
}

export async function startInProcess(home: string, control: Address): Promise<InProcess> {
  const config = readConfig({ MILLRACE_HOME: home, MILLRACE_DATABASE_URL: control.url, MILLRACE_PORT: '0' });
  const log = makeLog({ level: 'warn', role: 'bench' });
  await prepareDatabases(config, control, { log });
  const installation = await openInstallation({
    config,
    log,
    role: 'bench',
    controlAddress: control,
    secretKeys: await readSecretKeys(config),
    poolSize: 10,
  });
  const ending = new AbortController();
  const hosts = new ChildHosts({
    ...hostProcessesOf(installation),
    firstVersion: engineVersion,
    ending: ending.signal,
  });
  const launcher = launcherOf(installation, { hosts });
  const serving = makeServing({ installation, rootKey: await readRootKey(config), healthy: async () => true });
  await hosts.start();
  hosts.sendOrder({ databaseUrl: control.url }, onHostExit(installation));
  await launcher.start();
  await serving.start();
  return {
    carry: inProcess((path, body, signal) => serving.gateway.call(path, body, inProcessCaller, signal)),
    stop: atEnd(async () => {
      ending.abort();
      await serving.stop();
      await launcher.stop();
      await hosts.stop();
      await installation.close();
    }),
  };
}
