/**
 * Creates a cluster, and configures who may connect to it. The caller holds the home's claim.
 *
 * Promises: the data folder appears complete and synced, or not at all. A crash during initdb costs only time, and its remains
 * are removed.
 *
 * Only root and the server's own user may connect. The socket is in a 0700 folder, so no other ordinary user reaches it. With
 * `peer` authentication the kernel names the caller, and the map admits these two. A password would add no protection: both
 * users could read the file with it.
 */
import { randomBytes } from 'node:crypto';
import { chown, mkdir, open, readdir, readFile, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { exists } from './binaries.ts';
import type { ServerLayout } from './server-layout.ts';
import { isRoot, run } from './user.ts';
import { homeHash } from './home.ts';
import { unless } from './home-lock.ts';

/** The superuser's name in the cluster, independent of the name of the operating system's user. */
export const role = 'millrace';

export async function makeCluster(place: ServerLayout): Promise<void> {
  if (await exists(place.data)) return await checkVersion(place);
  await Promise.all([sweep(dirname(place.data), `${basename(place.data)}.new-`), sweep(memory, scratchName(place))]);
  const fresh = await makeFolder(place, `${place.data}.new-`);
  const scratch = (await memoryIsRoomy()) ? await makeFolder(place, join(memory, scratchName(place))) : undefined;
  try {
    await initialize(place, scratch ?? fresh);
    if (scratch !== undefined)
      await succeed(run('cp', ['-Rp', `${scratch}/.`, fresh], place.user), 'copying the new cluster');
    await writeAccess(place, fresh);
    await syncTree(place, fresh);
    await rename(fresh, place.data);
    await syncFolder(dirname(place.data));
  } finally {
    const left = [fresh, scratch].filter((folder) => folder !== undefined);
    await Promise.all(left.map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

/**
 * In memory if possible, because initdb writes its files several times: 0.6 to 0.8 s in memory, 1.0 to 1.8 s on an ext4 disk.
 * Copying the result to that disk took 0.1 s, and 0.3 to 0.8 s during a large deletion (2 cores, PostgreSQL 18.4).
 */
const memory = '/dev/shm';
const clusterBytes = 128 * 1024 * 1024;

async function memoryIsRoomy(): Promise<boolean> {
  const found = await statfs(memory).catch(() => undefined);
  return found !== undefined && found.bavail * found.bsize > clusterBytes;
}

function scratchName(place: ServerLayout): string {
  return `millrace-${homeHash(place.home)}-`;
}

/** A unique name, because an initdb that has outlived its `up` may still write to its folder. */
async function sweep(folder: string, prefix: string): Promise<void> {
  const names = await readdir(folder).catch(unless('ENOENT', []));
  const left = names.filter((name) => name.startsWith(prefix));
  await Promise.allSettled(left.map((name) => rm(join(folder, name), { recursive: true, force: true })));
}

async function makeFolder({ user }: ServerLayout, prefix: string): Promise<string> {
  const folder = `${prefix}${randomBytes(6).toString('hex')}`;
  await mkdir(folder, { mode: 0o700 });
  if (isRoot()) await chown(folder, user.uid, user.gid);
  return folder;
}

/** The builtin provider has `C.UTF-8`. The character types of libc follow it if the system has a locale of that name. */
async function initialize(place: ServerLayout, folder: string): Promise<void> {
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
  const access = [`--username=${role}`, '--auth-local=peer', '--auth-host=reject'];
  const args = [`--pgdata=${folder}`, '--no-sync', '--no-instructions', ...locale, ...access];
  const initdb = join(place.binaries.folder, 'bin', 'initdb');
  const known = await run(initdb, [...args, '--lc-ctype=C.UTF-8'], place.user);
  if (!known.ok) await succeed(run(initdb, args, place.user), 'initdb');
}

/** Uses one syncfs if available: it took 31 ms, a thousand fsyncs took 136 ms. */
async function syncTree(place: ServerLayout, folder: string): Promise<void> {
  const method = process.platform === 'linux' ? ['--sync-method=syncfs'] : [];
  const initdb = join(place.binaries.folder, 'bin', 'initdb');
  await succeed(run(initdb, ['--sync-only', ...method, '-D', folder], place.user), 'writing the new cluster to disk');
}

async function succeed(running: ReturnType<typeof run>, what: string): Promise<void> {
  const ran = await running;
  if (!ran.ok) throw new MillraceError('embedded_postgres', `${what} failed: ${ran.output}`);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes the access rules, which the server reads when it starts. */
export async function writeAccess(place: ServerLayout, folder: string): Promise<void> {
  const names = [...new Set(['root', place.user.name])];
  const quoted = names.map((name) => `${role} "${name.replaceAll('"', '""')}" ${role}\n`);
  await writeOwned(place, join(folder, 'pg_hba.conf'), `local all all peer map=${role}\n`);
  await writeOwned(place, join(folder, 'pg_ident.conf'), quoted.join(''));
}

async function writeOwned({ user }: ServerLayout, path: string, text: string): Promise<void> {
  if ((await readFile(path, 'utf8').catch(unless('ENOENT', undefined))) === text) return;
  const fresh = `${path}.new`;
  await writeFile(fresh, text, { mode: 0o600 });
  if (isRoot()) await chown(fresh, user.uid, user.gid);
  await rename(fresh, path);
}

async function checkVersion(place: ServerLayout): Promise<void> {
  const made = (await readFile(join(place.data, 'PG_VERSION'), 'utf8')).trim();
  const ours = place.binaries.version.split('.')[0];
  if (made === ours) return;
  const detail = `The cluster ${place.data} was made by PostgreSQL ${made}, this release brings ${ours}: start it with the release that made it, or move it away`;
  throw new MillraceError('embedded_postgres', detail);
}
