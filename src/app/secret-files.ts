/** The two secrets of a home, each in a file of its own that only its owner may read (I12). */
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createDurably, removeDrafts } from '../kernel/process/durable-file.ts';
import { readSecretFile, rejectFile, type SecretFile } from '../kernel/process/secret-file.ts';
import { findRootKeyFault, findSecretKeyFault, newSecret } from '../kernel/text/secret-text.ts';
import { describeSystemError, isSystemError } from '../postgres/embedded/home-lock.ts';

/** A secret of the home, which the first start makes. */
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
    remedy: `remove it, and the next start makes a new root key: rm ${path}`,
  };
}

function secretKeyFile(home: string): HomeSecret {
  const path = join(home, 'secret-key');
  return {
    path,
    variable: 'MILLRACE_SECRET_KEY',
    generate: () => randomBytes(32).toString('base64url'),
    findFault: findSecretKeyFault,
    remedy: `restore it from a backup. Without one, remove it (rm ${path}): the next start makes a new key, and the values of all stashes have to be written again`,
  };
}

export function rootKeyOf(home: string): Promise<string> {
  return readOrCreate(rootKeyFile(home));
}

export function secretKeyOf(home: string): Promise<string> {
  return readOrCreate(secretKeyFile(home));
}

/** Refuses a home with a faulty secret file, also one that this role does not use or that a variable stands in for. */
export async function checkSecretFiles(home: string): Promise<void> {
  for (const file of [rootKeyFile(home), secretKeyFile(home)])
    await readSecretFile(file).catch((error: unknown) => rejectSystemError(file, error));
}

/** An existing file is never replaced: one that cannot be used stops the start. */
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
  throw rejectFile(file, 'is a link that leads nowhere', `remove it: rm ${file.path}`);
}

function rejectSystemError(file: SecretFile, error: unknown): never {
  if (!isSystemError(error)) throw error;
  const fault = `cannot be read or made (${describeSystemError(error)})`;
  throw rejectFile(file, fault, `make it readable and its folder writable, or set ${file.variable}`, error);
}

export async function writeServerFile(home: string, url: string): Promise<void> {
  await writeFile(join(home, 'server.json'), `${JSON.stringify({ url, pid: process.pid })}\n`, { mode: 0o600 });
}

export async function removeServerFile(home: string): Promise<void> {
  await rm(join(home, 'server.json'), { force: true });
}
