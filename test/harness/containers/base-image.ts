/**
 * A base image without a registry: Node, and the few programs of Debian that the Dockerfile and the product run, copied from this
 * machine with their libraries. It has less than any image that users build on.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { productNode } from '../product.ts';
import type { EngineProcess } from './engine-process.ts';

const programs = 'cat chown cp echo env grep groupadd id kill ln ls mkdir mkfifo mv rm sh sleep tr useradd'.split(' ');
/** Parts of glibc that PostgreSQL or a lookup of names loads, beside those that Node loads. */
const glibc = ['librt.so.1', 'libresolv.so.2', 'libnss_files.so.2', 'libnss_dns.so.2'];
const folders = ['bin', 'sbin', 'lib', 'lib64'];

/** Imports it as `name`. */
export async function importBaseImage(engine: EngineProcess, name: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-base-'));
  try {
    const root = join(folder, 'root');
    for (const each of folders) {
      mkdirSync(join(root, 'usr', each), { recursive: true });
      symlinkSync(join('usr', each), join(root, each));
    }
    for (const each of ['etc', 'opt', 'proc', 'sys', 'dev', 'usr/local/bin', 'var/lib'])
      mkdirSync(join(root, each), { recursive: true });
    mkdirSync(join(root, 'tmp'));
    chmodSync(join(root, 'tmp'), 0o1777);
    const paths = [...programs.map(pathOf), realpathSync(productNode)];
    const libraries = librariesOf(paths);
    const libc = libraries.find((path) => basename(path) === 'libc.so.6') ?? '';
    const more = glibc.map((name) => join(dirname(libc), name));
    for (const path of new Set([...paths, ...libraries, ...more])) copyInto(root, path);
    symlinkSync(realpathSync(productNode), join(root, 'usr', 'local', 'bin', 'node'));
    writeFileSync(join(root, 'etc', 'passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
    writeFileSync(join(root, 'etc', 'group'), 'root:x:0:\n');
    const archive = join(folder, 'base.tar');
    execFileSync('tar', ['-C', root, '--owner=0', '--group=0', '-cf', archive, '.']);
    await engine.docker('import', archive, name);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function pathOf(program: string): string {
  const found = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']
    .map((each) => join(each, program))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${program} is not on this machine`);
  return found;
}

function librariesOf(paths: readonly string[]): string[] {
  const listed = execFileSync(
    'ldd',
    paths.filter((path) => path.startsWith('/')),
    { env: { LC_ALL: 'C', PATH: process.env['PATH'] ?? '' } },
  );
  return [...listed.toString().matchAll(/(?:=> |^\s)(\/\S+) \(/gm)].map(([, path = '']) => path);
}

/** By its real folder, because /lib and /bin are links. */
function copyInto(root: string, path: string): void {
  const target = join(root, realpathSync(dirname(path)), basename(path));
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(path, target);
}
