/** The short texts of a `docker` block: volumes, networks and sizes, as the docker command writes them. */
import { posix } from 'node:path';
import type { Read } from '../../documents/values.ts';

export interface Volume {
  /** An absolute path on the engine's machine, or the name of a volume of the engine. */
  readonly source: string;
  /** An absolute path in the container. */
  readonly target: string;
  readonly readOnly: boolean;
}

const volumeName = /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/;

export function readVolume(text: string): Read<Volume> {
  const [source = '', target = '', mode, ...rest] = text.split(':');
  if (target === '' || rest.length > 0) return reject('must be SOURCE:TARGET or SOURCE:TARGET:ro');
  if (mode !== undefined && mode !== 'ro' && mode !== 'rw') return reject('must end in :ro or :rw, or in neither');
  if (!posix.isAbsolute(source) && !volumeName.test(source))
    return reject('must begin with an absolute path, or with the name of a volume');
  if (!posix.isAbsolute(target) || posix.normalize(target) === '/')
    return reject('must name an absolute path in the container other than /');
  return { ok: true, value: { source, target, readOnly: mode === 'ro' } };
}

export function isPath({ source }: Volume): boolean {
  return posix.isAbsolute(source);
}

export function formatVolume({ source, target, readOnly }: Volume): string {
  return `${source}:${target}${readOnly ? ':ro' : ''}`;
}

/** `container:NAME` would enter another container. */
export function networkFault(value: string): string | undefined {
  return volumeName.test(value) ? undefined : 'must be the name of a network: letters, digits, _ . and -';
}

function reject(message: string): { readonly ok: false; readonly message: string } {
  return { ok: false, message };
}

/** A whole number of the largest unit that fits. */
export function formatBytes(bytes: number): string {
  const [unit = 'KiB', size = 1024] =
    (
      [
        ['GiB', 1024 ** 3],
        ['MiB', 1024 ** 2],
      ] as const
    ).find(([, each]) => bytes % each === 0) ?? [];
  return `${Math.round(bytes / size)} ${unit}`;
}
