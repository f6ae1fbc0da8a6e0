/** Folders and files that tasks may read and write under any user: under root, each task has a user of its own. */
import { chmod, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The caller removes it. */
export async function makeTaskFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-tasks-'));
  await chmod(folder, 0o777);
  return folder;
}

/** An empty file that several tasks may append to. */
export async function makeTaskFile(path: string): Promise<void> {
  await writeFile(path, '');
  await chmod(path, 0o666);
}
