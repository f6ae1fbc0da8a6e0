/** The role `worker`. It does not load database code, which a worker does not use, so that it starts faster and is smaller. */
import { hostname } from 'node:os';
import type { WorkerOptions } from '../cli/commands/server/role-commands.ts';
import { MillraceError } from '../errors.ts';
import type { GatewayEndpoints } from '../gateway/installation/endpoints.ts';
import { CallFailed, makeClient } from '../http/client.ts';
import { newId } from '../kernel/id.ts';
import { makeLog } from '../kernel/log.ts';
import { packageVersion } from '../kernel/process/package-files.ts';
import type { RuntimeOptions } from '../runtimes/factory.ts';
import { findKind, type WorkKind, workKinds } from '../runtimes/kinds.ts';
import { findMissing, makeRuntimes } from '../runtimes/runtimes.ts';
import { TaskUsers } from '../runtimes/users/task-users.ts';
import { checkHome } from '../postgres/embedded/home.ts';
import { makeWorker } from '../worker/worker.ts';
import { type Role, RoleEnd, untilAborted } from './role.ts';
import { checkSecretFiles } from './secret-files.ts';

/** Rejects a wrong key at once. If the server does not answer yet, the worker waits for it. */
async function checkKey(url: string, key: string): Promise<void> {
  const call = makeClient<GatewayEndpoints>({ base: url, headers: { authorization: `Bearer ${key}` } });
  const me = await call('GET /api/me').catch((error: unknown) => {
    if (error instanceof CallFailed && error.status < 500) throw error;
  });
  if (me === undefined || me.role === 'worker' || me.role === 'root') return;
  throw new MillraceError('forbidden', `a worker needs a key of the role worker; this one has the role ${me.role}`);
}

/** Rejects runtimes that are not available: the worker would wait for their runs in vain. */
function checkRuntimes(wished: readonly WorkKind[], options: Omit<RuntimeOptions, 'worker'>): void {
  const missing = findMissing(wished, options);
  if (missing.length === 0) return;
  const faults = missing.map(({ kind, reason }) => `--runtime ${kind}: ${reason}`);
  throw new MillraceError('bad_configuration', faults.join('; '));
}

/** The time after the drain to kill remaining tasks, return their runs, and get reports acknowledged. */
const afterDrainMs = 3_000;

export async function runWorker({ config, signal, say }: Role, options: WorkerOptions): Promise<void> {
  const log = makeLog({ level: config.logLevel, role: 'worker' });
  if (options.home !== undefined) {
    await checkHome(options.home);
    await checkSecretFiles(options.home);
  }
  if (options.key === undefined)
    throw new MillraceError(
      'unauthenticated',
      'set MILLRACE_KEY to a key of the role worker: `millrace key create --name … --role worker`',
    );
  const { functions = {}, runtimes: kinds = workKinds } = options;
  const users = new TaskUsers({ wish: config.taskUser, log });
  const equipment = {
    functions,
    environment: process.env,
    users,
    http: config.http,
    containers: config.containers,
    log,
  };
  checkRuntimes(options.runtimes ?? [], equipment);
  const { about } = await users.separation();
  await checkKey(options.url, options.key);
  const worker = makeWorker({
    id: newId(),
    name: options.name ?? hostname(),
    version: packageVersion,
    url: options.url,
    key: options.key,
    runtimes: (identity) => makeRuntimes(kinds, { ...equipment, worker: identity }),
    log,
    queues: options.queues,
    maxTasks: options.maxTasks ?? config.maxTasks,
    drainMs: config.drainMs,
    logLimitBytes: config.logLimitBytes,
  });
  const end = new RoleEnd(signal, config.drainMs + afterDrainMs, log);
  await worker.start();
  say(`Millrace worker for ${options.url}`);
  if (kinds.some((kind) => findKind(kind)?.isLocal)) say(`  tasks     ${about}`);
  await untilAborted(signal);
  await end.stop(worker);
  await end.finish('ending the shells of task users', users.stop());
}
