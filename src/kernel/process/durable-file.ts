/**
 * Files that are complete or absent, even if the machine or the process dies. The content goes to a draft beside the file, in
 * this order:
 *
 * 1. The draft is written, readable by its owner only.
 * 2. The draft is synced. From here on its content survives a power cut.
 * 3. The draft gets the file's name: by a link to create the file (of several processes one succeeds), by a rename to
 *    replace it.
 * 4. The folder is synced, and the draft removed.
 *
 * A crash before step 3 leaves no file, or the old one. A crash after it leaves the complete new file. `removeDrafts` removes
 * the draft that a crash leaves behind.
 */
import { randomBytes } from 'node:crypto';
import { link, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { declareCheckpoints } from '../checkpoint.ts';

const { names, checkpoint } = declareCheckpoints(
  // the draft is written, but not synced
  'file.drafted',
  // the draft is synced, but does not have the file's name yet
  'file.synced',
  // the file has its name, but its folder is not synced
  'file.linked',
  // the file is durable, but its draft still exists
  'file.kept',
);
export const fileCheckpoints = names;

const draftSuffix = '.draft';

/** Creates the file with this content. Returns false if the file exists already; it is not changed then. */
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

/** Removes drafts of an existing file. They are left behind by a crash, or belong to a process that comes too late. */
export async function removeDrafts(path: string): Promise<void> {
  const prefix = `${basename(path)}.`;
  const names = await readdir(dirname(path));
  const drafts = names.filter((name) => name.startsWith(prefix) && name.endsWith(draftSuffix));
  await Promise.all(drafts.map((name) => rm(join(dirname(path), name), { force: true })));
}
