/**
 * Starts a postmaster with our settings.
 *
 * Promises:
 * 1. Settings are on the command line, where neither `ALTER SYSTEM` nor an edited file overrides them.
 * 2. So is a fingerprint of the settings and the version. By it, the next `up` decides whether it may adopt the server.
 * 3. If the server does not start, the error contains the end of its log.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { memoryBytes } from '../../kernel/process/machine-memory.ts';
import { type ServerLayout, port } from './server-layout.ts';
import { untilReady } from './postmaster.ts';
import { type Cluster, clusterOf } from './processes.ts';
import { cleanEnvironment, identity } from './user.ts';
import { unless } from './home-lock.ts';

export interface Plan {
  readonly place: ServerLayout;
  readonly cluster: Cluster;
  readonly fingerprint: string;
  readonly args: readonly string[];
}

/** A child that was spawned has a pid. */
type Started = ChildProcess & { readonly pid: number };

/** A custom setting, which PostgreSQL stores without knowing it. */
export const fingerprintSetting = 'millrace.fingerprint';

const largestLogBytes = 16 * 1024 * 1024;
const largestTailBytes = 4_000;

/**
 * `shared_buffers`. This memory is only used as databases fill it. Backends read some megabytes of each tenant's catalogue. With
 * 128 MB, 200 tenants evicted each other's pages, and starting them took 1.5 times as long.
 */
export function sharedMb(totalBytes: number): number {
  return Math.min(1_024, Math.max(128, Math.floor(totalBytes / 2 ** 20 / 32)));
}

const ours: Readonly<Record<string, string>> = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  port: String(port),
  max_connections: '1000',
  shared_buffers: `${sharedMb(memoryBytes())}MB`,
  // tools may migrate or drop a tenant in a prepared transaction; the server's default is 0
  max_prepared_transactions: '100',
  // our statements are short: compiling one takes longer than it saves
  jit: 'off',
  // without `$user`, which is also our schema: tables that people create by hand must not be put there
  search_path: 'public',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] %d ',
};

export function planLaunch(place: ServerLayout, overrides: Readonly<Record<string, string>> = {}): Plan {
  const cluster = clusterOf(place.data);
  const sockets = `"${place.sockets.replaceAll('"', '""')}"`;
  const settings = { ...ours, cluster_name: cluster.name, unix_socket_directories: sockets, ...overrides };
  const text = JSON.stringify([place.binaries.version, Object.entries(settings)]);
  const fingerprint = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const all = Object.entries({ ...settings, [fingerprintSetting]: fingerprint });
  const args = ['-D', place.data, ...all.flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  return { place, cluster, fingerprint, args };
}

/** Starts it and returns when it accepts connections. */
export async function launch({ place, cluster, args }: Plan): Promise<Started> {
  const log = await openLog(place.log);
  try {
    const { size } = await log.stat();
    const child = await started(place, args, log);
    if (!(await untilReady(child.pid, cluster))) {
      throw new MillraceError('embedded_postgres', `PostgreSQL ended while starting: ${await tail(log, size)}`);
    }
    return child;
  } finally {
    await log.close();
  }
}

/** Spawns it in its own session. It does not keep our process alive. */
async function started(place: ServerLayout, args: readonly string[], log: FileHandle): Promise<Started> {
  const postgres = join(place.binaries.folder, 'bin', 'postgres');
  const stdio = ['ignore', log.fd, log.fd] as const;
  const options = { ...identity(place.user), cwd: '/', env: cleanEnvironment, detached: true, stdio: [...stdio] };
  const child = spawn(postgres, args, options);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) => {
      reject(new MillraceError('embedded_postgres', `${postgres} does not run: ${cause.message}`, { cause }));
    });
  });
  child.unref();
  return child as Started;
}

/** We open the log and pass the file on, so it may be in a folder that the server's user cannot enter. */
async function openLog(path: string): Promise<FileHandle> {
  const found = await stat(path).catch(unless('ENOENT', undefined));
  if (found !== undefined && found.size > largestLogBytes) await rename(path, `${path}.1`);
  return await open(path, 'a+', 0o600);
}

async function tail(log: FileHandle, from: number): Promise<string> {
  const { size } = await log.stat();
  const start = Math.max(from, size - largestTailBytes);
  const { buffer, bytesRead } = await log.read(Buffer.alloc(size - start), 0, size - start, start);
  return buffer.toString('utf8', 0, bytesRead).trim();
}
