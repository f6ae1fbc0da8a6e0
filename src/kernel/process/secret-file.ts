/**
 * Reads a file with a secret. All roles and files have the same rule: the file belongs to the user that runs Millrace, other
 * users may not read or write it, and its content is well-formed. A file that violates the rule is rejected with an
 * error that names the file and the remedy.
 */
import { readFile, stat } from 'node:fs/promises';
import { MillraceError } from '../../errors.ts';

export interface SecretFile {
  readonly path: string;
  /** The environment variable that may be set instead. */
  readonly variable: string;
  readonly findFault: (text: string) => string | undefined;
  /** The remedy for a malformed content. */
  readonly remedy: string;
}

/** The secret, without white space around it; undefined: there is no file. */
export async function readSecretFile(file: SecretFile): Promise<string | undefined> {
  const { path, remedy } = file;
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found === undefined) return undefined;
  if (!found.isFile()) throw rejectFile(file, 'is not a file', `move it away, or set ${file.variable}`);
  const uid = process.getuid?.() ?? found.uid;
  if (found.uid !== uid)
    throw rejectFile(file, `belongs to user ${found.uid}, and Millrace runs as user ${uid}`, `chown ${uid} ${path}`);
  if ((found.mode & 0o077) !== 0)
    throw rejectFile(
      file,
      `is open to other users (mode ${(found.mode & 0o777).toString(8)})`,
      `chmod 600 ${path}; if another user may have read it, use another key`,
    );
  const text = (await readFile(path, 'utf8')).trim();
  const fault = file.findFault(text);
  if (fault !== undefined) throw rejectFile(file, fault, remedy);
  return text;
}

export function rejectFile({ path }: SecretFile, fault: string, remedy: string, cause?: unknown): MillraceError {
  return new MillraceError('bad_configuration', `${path} ${fault}. Remedy: ${remedy}`, { cause });
}
