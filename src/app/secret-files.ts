/** The two secrets of a home, each in a file of its own that only its owner may read (I12). */
import { randomBytes } from 'node:crypto';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MillraceError } from '../errors.ts';
import { newSecret } from '../gateway/callers.ts';
import { createDurably, removeDrafts } from '../kernel/durable-file.ts';
import { findRootKeyFault, findSecretKeyFault } from '../kernel/secret-text.ts';
import { describeSystemError, isSystemError, unless } from '../postgres/home-lock.ts';

interface SecretFile {
  readonly path: string;
  /** The environment variable that may be set instead. */
  readonly variable: string;
  readonly generate: () => string;
  readonly findFault: (text: string) => string | undefined;
  /** What to do about a file with a faulty content. */
  readonly remedy: string;
}

export function rootKeyOf(home: string): Promise<string> {
  const path = join(home, 'root-key');
  return readOrCreate({
    path,
    variable: 'MILLRACE_ROOT_KEY',
    generate: () => newSecret('mrk_'),
    findFault: findRootKeyFault,
    remedy: `remove it, and the next start makes a new root key: rm ${path}`,
  });
}

export function secretKeyOf(home: string): Promise<string> {
  const path = join(home, 'secret-key');
  return readOrCreate({
    path,
    variable: 'MILLRACE_SECRET_KEY',
    generate: () => randomBytes(32).toString('base64url'),
    findFault: findSecretKeyFault,
    remedy: `restore it from a backup. Without one, remove it (rm ${path}): the next start makes a new key, and the values of all stashes have to be written again`,
  });
}

/** An existing file is never replaced: one that cannot be used stops the start. */
async function readOrCreate(file: SecretFile): Promise<string> {
  try {
    const known = await readSecret(file);
    if (known !== undefined) return known;
    await createDurably(file.path, `${file.generate()}\n`);
    const made = await readSecret(file);
    if (made !== undefined) return made;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const fault = `cannot be read or made (${describeSystemError(error)})`;
    throw rejectFile(file, fault, `make it readable and its folder writable, or set ${file.variable}`, error);
  }
  throw rejectFile(file, 'is a link that leads nowhere', `remove it: rm ${file.path}`);
}

async function readSecret(file: SecretFile): Promise<string | undefined> {
  const found = await stat(file.path).catch(unless('ENOENT', undefined));
  if (found === undefined) return undefined;
  const { path, remedy } = file;
  if (!found.isFile()) throw rejectFile(file, 'is not a file', `move it away, or set ${file.variable}`);
  const uid = process.getuid?.() ?? found.uid;
  if (found.uid !== uid)
    throw rejectFile(file, `belongs to user ${found.uid}, and Millrace runs as user ${uid}`, `chown ${uid} ${path}`);
  if ((found.mode & 0o077) !== 0)
    throw rejectFile(
      file,
      `is open to other users (mode ${(found.mode & 0o777).toString(8)})`,
      `chmod 600 ${path}; if somebody may have read it, use another key`,
    );
  const text = (await readFile(path, 'utf8')).trim();
  const fault = file.findFault(text);
  if (fault !== undefined) throw rejectFile(file, fault, remedy);
  await removeDrafts(path);
  return text;
}

function rejectFile({ path }: SecretFile, fault: string, remedy: string, cause?: unknown): MillraceError {
  return new MillraceError('bad_configuration', `${path} ${fault}. Remedy: ${remedy}`, { cause });
}

export async function writeServerFile(home: string, url: string): Promise<void> {
  await writeFile(join(home, 'server.json'), `${JSON.stringify({ url, pid: process.pid })}\n`, { mode: 0o600 });
}

export async function removeServerFile(home: string): Promise<void> {
  await rm(join(home, 'server.json'), { force: true });
}
