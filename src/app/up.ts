/**
 * `millrace up`: everything on one machine as one process tree. In order: the claim on the home, the embedded PostgreSQL
 * (unless MILLRACE_DATABASE_URL names another), the databases, the host in a process of its own, the API and a worker in
 * this one. It is healthy once the default tenant's scheduler is STARTED.
 */
import { hostname } from 'node:os';
import type { UpOptions } from '../cli/role-commands.ts';
import type { Config } from '../config.ts';
import { engineVersion } from '../engine/engine.ts';
import type { KeyCaller } from '../contract/roles.ts';
import { runtimeNames } from '../contract/wire.ts';
import { type Log, makeLog } from '../kernel/log.ts';
import { packageFile } from '../kernel/package-files.ts';
import { all, type Service } from '../kernel/service.ts';
import { disownSchedulers, isStarted } from '../launcher/control-queries.ts';
import { type Address, addressOfSocket, addressOfUrl } from '../postgres/address.ts';
import { claimHome, makeHome } from '../postgres/home.ts';
import { supervised } from '../postgres/supervised.ts';
import { makeRuntimes } from '../runtimes/runtimes.ts';
import { makeWorker } from '../worker/worker.ts';
import { type HostProcess, hostProcess } from './host-process.ts';
import { defaultTenant, type Installation, openInstallation, prepareDatabases } from './installation.ts';
import { type Role, untilAborted } from './role.ts';
import { secretKeys } from './roles.ts';
import { nextIncarnation, removeServerFile, rootKeyOf, writeServerFile, workerIdOf } from './secret-files.ts';
import { makeServing, type Serving } from './serving.ts';

const controlDatabase = 'millrace';
const freshMs = 10_000;

export async function runUp(role: Role, options: UpOptions): Promise<void> {
  const log = makeLog({ level: role.config.logLevel, role: 'up' });
  const home = await makeHome(role.config.home);
  const config = { ...role.config, home };
  const stopped = new AbortController();
  const claim = await claimHome(home, () => stopped.abort());
  const ending = AbortSignal.any([role.signal, stopped.signal]);
  const host = hostProcess({ main: packageFile('dist', 'main.js'), home, log, ending });
  try {
    await host.start();
    await withDatabase(config, log, role.say, (address) =>
      serve({ ...role, config, signal: ending }, options, {
        log,
        address,
        host,
      }),
    );
  } finally {
    await host.stop();
    await claim.release();
  }
}

/** The database that is configured, or the embedded one for as long as the work lasts. */
async function withDatabase(
  config: Config,
  log: Log,
  say: Role['say'],
  work: (address: Address) => Promise<void>,
): Promise<void> {
  if (config.databaseUrl !== undefined) return work(addressOfUrl(config.databaseUrl));
  const embedded = supervised({ home: config.home, log });
  await embedded.start();
  try {
    const server = embedded.server();
    for (const note of server.notes) say(note);
    await work(addressOfSocket(server.connection, controlDatabase));
  } finally {
    await embedded.stop();
  }
}

interface Ground {
  readonly log: Log;
  readonly address: Address;
  readonly host: HostProcess;
}

async function serve(role: Role, options: UpOptions, { log, address, host }: Ground): Promise<void> {
  const { config } = role;
  await prepareDatabases(config, address);
  const installation = await openInstallation({
    config,
    log,
    role: 'up',
    controlAddress: address,
    secretKeys: await secretKeys(config, config.home),
    poolSize: 10,
  });
  try {
    await disown(installation);
    host.tell(address.url);
    await serveInstallation(role, options, installation);
  } finally {
    await host.stop();
    await installation.close();
  }
}

/** What an `up` that was killed left as STARTED is not. On an embedded server no other host can be alive. */
function disown({ config, control, time }: Installation): Promise<void> {
  const silentMs = config.databaseUrl === undefined ? 0 : freshMs;
  return disownSchedulers(control, new Date(time.now() - silentMs));
}

async function serveInstallation(role: Role, options: UpOptions, installation: Installation): Promise<void> {
  const { config, control, time } = installation;
  const rootKey = config.rootKey ?? (await rootKeyOf(config.home));
  const healthy = (): Promise<boolean> => isStarted(control, defaultTenant, new Date(time.now() - freshMs));
  const serving = makeServing({ installation, rootKey, healthy });
  const worker = options.worker ? [inProcessWorker(installation, serving)] : [];
  const services = all('up', [serving, announced(installation, serving), ...worker]);
  try {
    await services.start();
    await greet(role, serving);
    await untilAborted(role.signal);
    role.say('Stopping; running tasks may take a few seconds to end.');
  } finally {
    await services.stop();
  }
}

/** Tells the command line where the server is, for as long as it is there. */
function announced(installation: Installation, serving: Serving): Service {
  return {
    name: 'server.json',
    async start() {
      await writeServerFile(installation.config.home, serving.url());
    },
    stop: () => removeServerFile(installation.config.home),
  };
}

/** Made when it starts: only then is the address known that tasks are told. */
function inProcessWorker(installation: Installation, serving: Serving): Service {
  let worker: Service | undefined;
  return {
    name: 'worker',
    async start() {
      worker ??= await makeInProcessWorker(installation, serving);
      await worker.start();
    },
    async stop() {
      await worker?.stop();
    },
  };
}

function always<T>(value: T): () => T {
  return () => value;
}

async function makeInProcessWorker({ config, log }: Installation, serving: Serving): Promise<Service> {
  const caller: KeyCaller = { kind: 'key', role: 'worker', tenant: null, actor: 'worker of up' };
  const own = log.child({ part: 'worker' });
  return makeWorker({
    id: await workerIdOf(config.home),
    incarnation: always(await nextIncarnation(config.home)),
    name: hostname(),
    version: engineVersion,
    url: 'http://in-process',
    key: 'in-process',
    fetch: (request) => serving.gateway.fetchAs(request, caller),
    taskUrl: config.publicUrl ?? serving.url(),
    runtimes: makeRuntimes({ names: runtimeNames, functions: {}, environment: process.env, log: own }),
    log: own,
    maxTasks: config.maxTasks,
    drainMs: config.drainMs,
    logLimitBytes: config.logLimitBytes,
  });
}

async function greet({ config, say }: Role, serving: Serving): Promise<void> {
  say(`Millrace ${engineVersion} at ${serving.url()}`);
  say(`  sign in   ${await serving.signInLink()}`);
  say(`  home      ${config.home}`);
  say('  stop      Ctrl-C, or `millrace down`');
}
