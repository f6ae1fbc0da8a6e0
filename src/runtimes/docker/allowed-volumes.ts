/**
 * Which folders and volumes containers may use: those that `MILLRACE_DOCKER_VOLUMES` lists, and folders below listed folders. A
 * path is judged, and mounted, with all its links resolved.
 */
import { realpathSync } from 'node:fs';
import { posix } from 'node:path';
import { RefusedField } from './container-spec.ts';
import { isPath, type Volume } from './volume.ts';

export interface AllowedVolumes {
  readonly allowed: readonly string[];
  /** The engine runs on this machine, so that paths can be resolved. */
  readonly isLocal: boolean;
}

export function resolveVolume(volume: Volume, { allowed, isLocal }: AllowedVolumes): string {
  const { source } = volume;
  if (!isPath(volume)) {
    if (allowed.includes(source)) return source;
    throw new RefusedField(`this worker does not allow the volume "${source}" (MILLRACE_DOCKER_VOLUMES)`);
  }
  if (!isLocal)
    throw new RefusedField('the engine of this worker is on another machine, whose folders cannot be checked');
  const path = realpath(source);
  const folders = allowed.filter((each) => posix.isAbsolute(each)).flatMap((each) => realpath(each) ?? []);
  // the answer for a path outside does not reveal whether it exists
  const isAllowed = (inside: string): boolean => folders.some((folder) => isBelow(inside, folder));
  if (path !== undefined && isAllowed(path)) return path;
  if (path === undefined && isAllowed(posix.normalize(source)))
    throw new RefusedField(`the folder "${source}" does not exist on this worker`);
  throw new RefusedField(`this worker does not allow the folder "${source}" (MILLRACE_DOCKER_VOLUMES)`);
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

function realpath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
