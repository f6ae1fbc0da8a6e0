/** The two secrets of a home, each in a file of its own that only its owner may read (I12). */
import { randomBytes } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newSecret } from '../gateway/callers.ts';

/** Reads the file, or makes it with that content; of several that make it at once one wins and all read the same. */
async function kept(path: string, make: () => string): Promise<string> {
  const known = await readFile(path, 'utf8').catch(() => undefined);
  if (known !== undefined && known.trim() !== '') return known.trim();
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${make()}\n`, { mode: 0o600 });
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft);
  return (await readFile(path, 'utf8')).trim();
}

export function rootKeyOf(home: string): Promise<string> {
  return kept(join(home, 'root-key'), () => newSecret('mrk_'));
}

export function secretKeyOf(home: string): Promise<string> {
  return kept(join(home, 'secret-key'), () => randomBytes(32).toString('base64url'));
}

export async function writeServerFile(home: string, url: string): Promise<void> {
  await writeFile(join(home, 'server.json'), `${JSON.stringify({ url, pid: process.pid })}\n`, { mode: 0o600 });
}

export async function removeServerFile(home: string): Promise<void> {
  await rm(join(home, 'server.json'), { force: true });
}
