/** The two secrets of a home, each in a file that only its owner may read (I12). */
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createDurably, removeDrafts } from '../kernel/process/durable-file.ts';
import { readSecretFile, rejectFile, type SecretFile } from '../kernel/process/secret-file.ts';
import { findRootKeyFault, findSecretKeyFault, newSecret } from '../kernel/text/secret-text.ts';
import { describeSystemError, isSystemError } from '../postgres/embedded/home-lock.ts';

/** A secret of the home. The first start generates it. */
interface HomeSecret extends SecretFile {
  readonly generate: () => string;
}

function rootKeyFile(home: string): HomeSecret {
  const path = join(home, 'root-key');
  return {
    path,
    variable: 'MILLRACE_ROOT_KEY',
    generate: () => newSecret('mrk_'),
    findFault: findRootKeyFault,
    remedy: `remove it, and the next start creates a new root key: rm ${path}`,
  };
}

function secretKeyFile(home: string): HomeSecret {
  const path = join(home, 'secret-key');
  return {
    path,
    variable: 'MILLRACE_SECRET_KEY',
    generate: () => randomBytes(32).toString('base64url'),
    findFault: findSecretKeyFault,
    remedy: `restore it from a backup. Without one, remove it (rm ${path}): the next start creates a new key, and all stash values have to be stored again`,
  };
}

export function rootKeyOf(home: string): Promise<string> {
  return readOrCreate(rootKeyFile(home));
}

export function secretKeyOf(home: string): Promise<string> {
  return readOrCreate(secretKeyFile(home));
}

/** Rejects a home with a faulty secret file, even if this role does not use it or a variable replaces it. */
export async function checkSecretFiles(home: string): Promise<void> {
  for (const file of [rootKeyFile(home), secretKeyFile(home)])
    await readSecretFile(file).catch((error: unknown) => rejectSystemError(file, error));
}

/** Never replaces an existing file: a file that cannot be used stops the start. */
async function readOrCreate(file: HomeSecret): Promise<string> {
  try {
    const secret = (await readSecretFile(file)) ?? (await create(file));
    await removeDrafts(file.path);
    return secret;
  } catch (error) {
    return rejectSystemError(file, error);
  }
}

async function create(file: HomeSecret): Promise<string> {
  await createDurably(file.path, `${file.generate()}\n`);
  const made = await readSecretFile(file);
  if (made !== undefined) return made;
  throw rejectFile(file, 'is a broken link', `remove it: rm ${file.path}`);
}

function rejectSystemError(file: SecretFile, error: unknown): never {
  if (!isSystemError(error)) throw error;
  const fault = `cannot be read or created (${describeSystemError(error)})`;
  throw rejectFile(file, fault, `make it readable and its folder writable, or set ${file.variable}`, error);
}

export async function writeServerFile(home: string, url: string): Promise<void> {
  await writeFile(join(home, 'server.json'), `${JSON.stringify({ url, pid: process.pid })}\n`, { mode: 0o600 });
}

export async function removeServerFile(home: string): Promise<void> {
  await rm(join(home, 'server.json'), { force: true });
}
