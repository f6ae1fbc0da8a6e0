/**
 * Files that are complete or absent, whenever the machine or the process dies. The content goes to a draft beside the
 * file, in this order:
 *
 * 1. The draft is written, readable by its owner alone.
 * 2. The draft is synced. From here on its content survives a power cut.
 * 3. The draft gets the file's name: by a link to create the file, of which one of several processes succeeds; by a rename
 *    to replace it.
 * 4. The folder is synced, and the draft removed.
 *
 * A crash before step 3 leaves no file, or the old one; a crash after it the whole new file. The draft that a crash leaves behind is removed
 * by `removeDrafts`.
 */
import { randomBytes } from 'node:crypto';
import { link, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { declareCheckpoints } from '../checkpoint.ts';

const { names, checkpoint } = declareCheckpoints(
  // the draft is written, and not synced
  'file.drafted',
  // the draft is synced, and has no name that is ever read
  'file.synced',
  // the file has its name, and its folder is not synced
  'file.linked',
  // the file is there for good, and its draft still exists
  'file.kept',
);
export const fileCheckpoints = names;

const draftSuffix = '.draft';

/** Creates the file with this content; false when the file exists already, which is left as it is. */
export async function createDurably(path: string, content: string): Promise<boolean> {
  const draft = draftOf(path);
  try {
    await writeDraft(draft, content);
    const created = await link(draft, path).then(() => true, isLate);
    checkpoint('file.linked');
    await syncFolder(dirname(path));
    checkpoint('file.kept');
    return created;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Writes the file, whether it exists or not. */
export async function replaceDurably(path: string, content: string): Promise<void> {
  const draft = draftOf(path);
  try {
    await writeDraft(draft, content);
    await rename(draft, path);
    await syncFolder(dirname(path));
  } finally {
    await rm(draft, { force: true });
  }
}

function draftOf(path: string): string {
  return `${path}.${randomBytes(4).toString('hex')}${draftSuffix}`;
}

async function writeDraft(draft: string, content: string): Promise<void> {
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(content);
    checkpoint('file.drafted');
    await file.sync();
    checkpoint('file.synced');
  } finally {
    await file.close();
  }
}

/** The name is taken, or the process that took it has removed our draft. */
function isLate(error: NodeJS.ErrnoException): false {
  if (error.code === 'EEXIST' || error.code === 'ENOENT') return false;
  throw error;
}

async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

/** Removes drafts of a file that exists: a crash has left them behind, or their process comes too late. */
export async function removeDrafts(path: string): Promise<void> {
  const prefix = `${basename(path)}.`;
  const names = await readdir(dirname(path));
  const drafts = names.filter((name) => name.startsWith(prefix) && name.endsWith(draftSuffix));
  await Promise.all(drafts.map((name) => rm(join(dirname(path), name), { force: true })));
}
