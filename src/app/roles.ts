/** Each role as one long-running function: set up, run until the signal aborts, tidy up. */
import type { WorkerOptions } from '../cli/role-commands.ts';
import { hostname } from 'node:os';
import type { Config } from '../config.ts';
import { runtimeNames } from '../contract/wire.ts';
import { engineVersion } from '../engine/engine.ts';
import { MillraceError } from '../errors.ts';
import type { GatewayEndpoints } from '../gateway/endpoints.ts';
import { CallFailed, makeClient } from '../http/client.ts';
import { newId } from '../kernel/id.ts';
import { makeLog, type Log } from '../kernel/log.ts';
import { makeHost } from '../launcher/host.ts';
import { type Address, addressOfUrl } from '../postgres/address.ts';
import { makeHome } from '../postgres/home.ts';
import { loadFunctions } from '../worker/functions.ts';
import { makeRuntimes } from '../runtimes/runtimes.ts';
import { makeWorker } from '../worker/worker.ts';
import type { HostOrder } from './host-process.ts';
import { type Installation, openInstallation, prepareDatabases } from './installation.ts';
import { makeServing } from './serving.ts';
import { rootKeyOf, secretKeyOf } from './secret-files.ts';

export interface Role {
  readonly config: Config;
  /** Aborts when the role is to end. */
  readonly signal: AbortSignal;
  /** What a person should read. */
  readonly say: (line: string) => void;
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

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
    installation.setServerUrl(serving.url());
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
  const { control, loader, addressOf, statuses, time } = installation;
  const host = makeHost({
    control,
    loader,
    addressOf,
    statuses,
    time,
    version: engineVersion,
    allowPooler: config.sessionPooler,
    log,
  });
  try {
    await host.start();
    await untilAborted(signal);
  } finally {
    await host.stop();
    await installation.close();
  }
}

/** A key that will never do is told at once; a server that does not answer yet is waited for. */
async function checkKey(url: string, key: string): Promise<void> {
  const call = makeClient<GatewayEndpoints>({ base: url, headers: { authorization: `Bearer ${key}` } });
  const me = await call('GET /api/me').catch((error: unknown) => {
    if (error instanceof CallFailed && error.status < 500) throw error;
  });
  if (me === undefined || me.role === 'worker' || me.role === 'root') return;
  throw new MillraceError('forbidden', `a worker needs a key of the role worker; this one is of the role ${me.role}`);
}

export async function runWorker({ config, signal, say }: Role, options: WorkerOptions): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'worker' });
  if (options.key === undefined)
    throw new MillraceError(
      'unauthenticated',
      'set MILLRACE_KEY to a key of the role worker: `millrace key create --name … --role worker`',
    );
  await checkKey(options.url, options.key);
  const functions = options.functions === undefined ? {} : await loadFunctions(options.functions);
  const worker = makeWorker({
    id: newId(),
    name: options.name ?? hostname(),
    version: engineVersion,
    url: options.url,
    key: options.key,
    runtimes: makeRuntimes({ names: options.runtimes ?? runtimeNames, functions, environment: process.env }),
    log,
    queues: options.queues,
    maxTasks: options.maxTasks ?? config.maxTasks,
    drainMs: config.drainMs,
  });
  await worker.start();
  say(`Millrace worker for ${options.url}`);
  await untilAborted(signal);
  await worker.stop();
}
