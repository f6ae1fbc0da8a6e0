/**
 * Starting a postmaster: which settings it gets, and the spawn itself.
 *
 * Promises: settings stand on the command line, where neither `ALTER SYSTEM` nor an edited file overrides them, with a
 * fingerprint of them and of the version, by which the next `up` knows whether it may adopt the server. A server that
 * does not come up fails with what it wrote to its log.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { memoryBytes } from '../../kernel/process/machine-memory.ts';
import { type Place, port } from './place.ts';
import { untilReady } from './postmaster.ts';
import { type Cluster, clusterOf } from './processes.ts';
import { cleanEnvironment, identity } from './user.ts';
import { unless } from './home-lock.ts';

export interface Plan {
  readonly place: Place;
  readonly cluster: Cluster;
  readonly fingerprint: string;
  readonly args: readonly string[];
}

/** A child that was spawned has a pid. */
type Started = ChildProcess & { readonly pid: number };

/** A setting of our own, which PostgreSQL keeps without knowing it. */
export const fingerprintSetting = 'millrace.fingerprint';

const largestLogBytes = 16 * 1024 * 1024;
const largestTailBytes = 4_000;

/**
 * Memory that is used only as databases fill it. Each tenant brings a catalogue of its own, of which its backends read
 * some megabytes: with 128 MB those of 200 tenants pushed each other out, and starting them took half as long again.
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
  // a tool may migrate or drop a tenant in a transaction that it prepares; the server's default is that none can be
  max_prepared_transactions: '100',
  // our statements are short: compiling one costs more than it saves
  jit: 'off',
  // its role is called as our schema: what a person makes by hand must not land in that
  search_path: 'public',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] %d ',
};

export function planLaunch(place: Place, overrides: Readonly<Record<string, string>> = {}): Plan {
  const cluster = clusterOf(place.data);
  const sockets = `"${place.sockets.replaceAll('"', '""')}"`;
  const settings = { ...ours, cluster_name: cluster.name, unix_socket_directories: sockets, ...overrides };
  const text = JSON.stringify([place.binaries.version, Object.entries(settings)]);
  const fingerprint = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const all = Object.entries({ ...settings, [fingerprintSetting]: fingerprint });
  const args = ['-D', place.data, ...all.flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  return { place, cluster, fingerprint, args };
}

/** Starts it and returns when it takes connections. */
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

/** Spawned in a session of its own. It does not keep us running. */
async function started(place: Place, args: readonly string[], log: FileHandle): Promise<Started> {
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

/** Opened by us and handed down, so it may lie where the server's user cannot go. */
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
