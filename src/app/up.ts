/**
 * `millrace up`: everything on one machine as one process tree. It starts, in this order: the lock of the home, the embedded
 * PostgreSQL (unless MILLRACE_DATABASE_URL names another one), the databases, hosts in processes of their own, and in this
 * process the launcher, the API, a conductor and a worker. A courier, in a process of its own, follows once there is a subscriber. It is healthy once the default tenant's scheduler is STARTED.
 */
import { defaultTenant } from '../contract/tenants.ts';
import { hostname } from 'node:os';
import type { UpOptions } from '../cli/commands/server/role-commands.ts';
import type { Config } from '../config.ts';
import { engineVersion } from '../engine/engine.ts';
import { inProcessCaller } from '../gateway/access/worker-access.ts';
import { type Log, makeLog } from '../kernel/log.ts';
import { all, endingEarlier, type Service, together } from '../kernel/service.ts';
import { markAllConductorsLost } from '../control/conductor-queries.ts';
import { isStarted } from '../control/queries.ts';
import { forgetProcesses, restEntries } from '../launcher/hosts/host-shutdown.ts';
import { type Address, addressOfSocket, addressOfUrl } from '../postgres/address.ts';
import { claimHome, makeHome } from '../postgres/embedded/home.ts';
import { supervised } from '../postgres/embedded/supervised-server.ts';
import { workKinds } from '../runtimes/kinds.ts';
import { makeRuntimes } from '../runtimes/runtimes.ts';
import { TaskUsers } from '../runtimes/users/task-users.ts';
import { inProcess } from '../worker/transport.ts';
import { makeWorker } from '../worker/worker.ts';
import { ChildHosts } from './child-hosts.ts';
import { conductorService, fileFunctions, namesOf } from './conductor/conductor-service.ts';
import { courierProcess } from './courier-process.ts';
import { type Installation, openInstallation } from './installation.ts';
import { type Role, RoleEnd, unlessAborted, untilAborted } from './role.ts';
import { hostProcessesOf, launcherOf, onHostExit } from './launcher-role.ts';
import { readRootKey, readSecretKeys } from './open-installation.ts';
import { prepareDatabases } from './prepare-databases.ts';
import { removeServerFile, writeServerFile } from './secret-files.ts';
import { makeServing, type Serving } from './serving.ts';
import { keepIdentity, nextIdentity } from './worker-identity.ts';

const controlDatabase = 'millrace';
/**
 * `up` ends within the drain and `afterDrainMs`, 8 s by default. Each figure of `reserveMs` is the time that remains for the
 * following steps: first the worker and the hosts stop at the same time; then the API and the launcher; then connections are
 * closed; PostgreSQL is last. It has written a checkpoint meanwhile. If its second one is not finished in time, the next start
 * recovers.
 */
const afterDrainMs = 3_000;
const reserveMs = { work: 300, services: 900, close: 700, database: 200 } as const;

export async function runUp(role: Role, options: UpOptions): Promise<void> {
  const log = makeLog({ level: role.config.logLevel, role: 'up' });
  const home = await makeHome(role.config.home);
  const config = { ...role.config, home };
  const stopped = new AbortController();
  const claim = await claimHome(home, () => stopped.abort());
  const ending = AbortSignal.any([role.signal, stopped.signal]);
  const hosts = new ChildHosts({ ...hostProcessesOf({ config, log }), firstVersion: engineVersion, ending });
  const end = new RoleEnd(ending, config.drainMs + afterDrainMs, log);
  try {
    const secrets = { secretKeys: await readSecretKeys(config), rootKey: await readRootKey(config) };
    await hosts.start();
    const serving = { ...role, config, signal: ending };
    const work = (address: Address): Promise<void> => serve(serving, options, { log, address, hosts, end, ...secrets });
    await withDatabase(serving, { log, end }, work);
  } finally {
    await end.stop(hosts);
    await claim.release();
  }
}

/** Runs the work with the configured database, or starts the embedded one and stops it after the work. */
async function withDatabase(
  { config, say, signal }: Role,
  { log, end }: Pick<Ground, 'log' | 'end'>,
  work: (address: Address) => Promise<void>,
): Promise<void> {
  if (config.databaseUrl !== undefined) return work(addressOfUrl(config.databaseUrl));
  const embedded = supervised({ home: config.home, log });
  await embedded.start();
  const begin = (): void => {
    // while running tasks end, PostgreSQL already writes most of its shutdown checkpoint
    void embedded
      .server()
      .checkpoint()
      .catch(() => {});
  };
  signal.addEventListener('abort', begin, { once: true });
  try {
    const server = embedded.server();
    for (const note of server.notes) say(note);
    await work(addressOfSocket(server.connection, controlDatabase));
  } finally {
    signal.removeEventListener('abort', begin);
    // not by `end.stop`: the process must not end before PostgreSQL, which takes only a moment beyond the deadline
    await embedded.stop(end.deadlineBefore(reserveMs.database));
  }
}

interface Ground {
  readonly log: Log;
  readonly address: Address;
  readonly hosts: ChildHosts;
  readonly end: RoleEnd;
  readonly secretKeys: readonly [string, ...string[]];
  readonly rootKey: string;
}

async function serve(role: Role, options: UpOptions, ground: Ground): Promise<void> {
  const { config, signal } = role;
  const { log, address, hosts, end, secretKeys } = ground;
  const onUpgrade = embedded(config) ? announceUpgrade(role.say) : undefined;
  await unlessAborted(signal, prepareDatabases(config, address, { log, onUpgrade }));
  if (signal.aborted) return;
  const opening = openInstallation({
    config,
    log,
    role: 'up',
    controlAddress: address,
    secretKeys,
    poolSize: 10,
  });
  const installation = await unlessAborted(signal, opening);
  if (installation === undefined) return;
  try {
    // this process owns the home and its server, so processes that are recorded as alive were killed
    if (embedded(config)) {
      await forgetProcesses(installation.control);
      await markAllConductorsLost(installation.control);
    }
    hosts.sendOrder({ databaseUrl: address.url }, onHostExit(installation));
    await serveInstallation(role, options, installation, ground);
  } finally {
    await end.stop(hosts, reserveMs.services);
    await end.finish('recording that all tenants are stopped', restEntries(installation.control), reserveMs.close);
    await end.finish('closing connections', installation.close(), reserveMs.close);
  }
}

function embedded({ databaseUrl }: Config): boolean {
  return databaseUrl === undefined;
}

function announceUpgrade(say: Role['say']): (from: string) => void {
  return (from) =>
    say(
      `The tenant ${defaultTenant} was at version ${from}, which is not installed; it was upgraded to ${engineVersion}.`,
    );
}

async function serveInstallation(
  role: Role,
  options: UpOptions,
  installation: Installation,
  { hosts, end, rootKey }: Pick<Ground, 'hosts' | 'end' | 'rootKey'>,
): Promise<void> {
  const { config, control, log } = installation;
  const users = new TaskUsers({ wish: config.taskUser, log });
  const runsTasks = options.worker || options.functions !== undefined;
  const separation = runsTasks ? await users.separation() : undefined;
  const healthy = (): Promise<boolean> => isStarted(control, defaultTenant);
  const serving = makeServing({ installation, rootKey, healthy });
  const worker = options.worker ? [inProcessWorker(installation, serving, users)] : [];
  const order = { databaseUrl: installation.controlAddress.url };
  const courier = courierProcess({ ...hostProcessesOf({ config, log }), control, order });
  const work = together('work', [hosts, courier, ...worker]);
  const launcher = launcherOf(installation, { hosts, alone: embedded(config) });
  const announcement = serverFile(installation, serving);
  const functions = fileFunctions(installation, options.functions);
  const conductor = conductorService({
    installation,
    functions,
    maxCalls: config.conductorCalls,
    apiUrl: () => config.publicUrl ?? serving.url(),
    isAlone: false,
    signal: role.signal,
  });
  const parts = [launcher, serving, conductor, announcement, endingEarlier(reserveMs.work, work)];
  const services = all('up', parts);
  try {
    await services.start();
    await greet(role, serving, { tasks: separation?.about, functions: namesOf(functions) });
    await untilAborted(role.signal);
    role.say('Stopping; running tasks may take a few seconds to end.');
  } finally {
    await end.stop(services, reserveMs.services);
  }
}

/** Writes the server's address to a file of the home, where the command line finds it, and removes the file at the end. */
function serverFile(installation: Installation, serving: Serving): Service {
  return {
    name: 'server.json',
    async start() {
      await writeServerFile(installation.config.home, serving.url());
    },
    stop: () => removeServerFile(installation.config.home),
  };
}

/** Created when it starts, because the address that tasks receive is known only then. */
function inProcessWorker(installation: Installation, serving: Serving, users: TaskUsers): Service {
  let worker: Service | undefined;
  return {
    name: 'worker',
    async start() {
      worker ??= await makeInProcessWorker(installation, serving, users);
      await worker.start();
    },
    quiet: () => worker?.quiet?.(),
    async stop(deadlineMs) {
      await worker?.stop(deadlineMs);
      await users.stop();
    },
  };
}

function always<T>(value: T): () => T {
  return () => value;
}

async function makeInProcessWorker(
  { config, log }: Installation,
  serving: Serving,
  users: TaskUsers,
): Promise<Service> {
  const own = log.child({ part: 'worker' });
  const { id, incarnation } = await nextIdentity(config.home, own);
  return makeWorker({
    id,
    incarnation: always(incarnation),
    onNewIdentity: (identity) => void keepIdentity(config.home, own, identity),
    name: hostname(),
    version: engineVersion,
    url: 'http://in-process',
    key: 'in-process',
    carry: inProcess((path, body, signal) => serving.gateway.call(path, body, inProcessCaller, signal)),
    taskUrl: config.publicUrl ?? serving.url(),
    runtimes: (worker) =>
      makeRuntimes(workKinds, {
        functions: {},
        environment: process.env,
        users,
        http: config.http,
        containers: config.containers,
        log: own,
        worker,
      }),
    log: own,
    maxTasks: config.maxTasks,
    drainMs: config.drainMs,
    logLimitBytes: config.logLimitBytes,
  });
}

interface Greeting {
  /** How tasks are separated from this process. */
  readonly tasks: string | undefined;
  readonly functions: string | undefined;
}

async function greet({ config, say }: Role, serving: Serving, { tasks, functions }: Greeting): Promise<void> {
  say(`Millrace ${engineVersion} at ${serving.url()}`);
  say(`  sign in   ${await serving.signInLink()}`);
  say(`  home      ${config.home}`);
  if (tasks !== undefined) say(`  tasks     ${tasks}`);
  if (functions !== undefined) say(`  functions ${functions}`);
  say('  stop      Ctrl-C, or `millrace down`');
}
