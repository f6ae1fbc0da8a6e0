/**
 * Finds the server that a command talks to, and the key.
 *
 * 1. Server: `--url`, else MILLRACE_URL, else `server.json` in the home, which `millrace up` writes.
 * 2. Key: MILLRACE_KEY, or the file that MILLRACE_KEY_FILE names, else the root key of the home. That is sent only to the
 *    server of the same home.
 * 3. Home: `--home`, else MILLRACE_HOME, else the nearest `.millrace` in this folder or above it, as git finds its folder.
 *    A home that is found this way must belong to the user, because it names the server that receives the user's key.
 */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { MillraceError } from '../../errors.ts';
import { readSecretVariable } from '../../kernel/process/secret-variable.ts';
import { UsageError } from './exit.ts';
import type { Environment } from './io.ts';

export interface Place {
  readonly cwd: string;
  readonly env: Environment;
  /** `--home`. */
  readonly home?: string | undefined;
  /** `--url`. */
  readonly url?: string | undefined;
}

export interface Connection {
  /** Without a slash at the end. */
  readonly url: string;
  readonly key: string | undefined;
  /** The home that named the server or holds the key; undefined if neither comes from a home. */
  readonly home?: string;
}

const homeName = '.millrace';
export const whatToDo = 'start it with `millrace up`, or set MILLRACE_URL';

/** Returns the given home, else the nearest one in this folder or above it, else the one that `up` would create here. */
export async function findHome(place: Place): Promise<string> {
  const named = given(place.home) ?? given(place.env['MILLRACE_HOME']);
  if (named !== undefined) return resolve(place.cwd, named);
  for (let folder = resolve(place.cwd); ; folder = dirname(folder)) {
    const home = join(folder, homeName);
    if (await isOwnFolder(home)) return home;
    if (dirname(folder) === folder) return resolve(place.cwd, homeName);
  }
}

export async function findConnection(place: Place): Promise<Connection> {
  const key = given(readSecretVariable(place.env, 'MILLRACE_KEY'));
  const named = given(place.url) ?? given(place.env['MILLRACE_URL']);
  if (named === undefined) return ofHome(await findHome(place), key, place.env);
  const url = checkUrl(named);
  if (key !== undefined) return { url, key };
  // the home may belong to another server, or may not exist
  const own = await findHome(place)
    .then((home) => ofHome(home, undefined, place.env))
    .catch(() => undefined);
  return own?.url === url ? own : { url, key: undefined };
}

async function ofHome(home: string, key: string | undefined, env: Environment): Promise<Connection> {
  const url = await readServerUrl(home);
  if (url === undefined)
    throw new MillraceError('unreachable', `no server is known: ${home} has no server.json; ${whatToDo}`);
  return { url, key: key ?? (await readRootKey(home, env))?.trim(), home };
}

/** Treats an empty variable as not set. */
export function given(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text.trim();
}

async function isOwnFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || !found.isDirectory()) return false;
  if (found.uid === (process.getuid?.() ?? found.uid)) return true;
  throw new UsageError(`${path} belongs to user ${found.uid}. If you trust that user, name it: --home ${path}`);
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${JSON.stringify(text)} is not the address of a server; write it like http://127.0.0.1:8080`);
  }
  if (url.username !== '' || url.password !== '')
    throw new UsageError('give the key in MILLRACE_KEY, not in the address');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

const serverFile = z.object({ url: z.string() });

async function readServerUrl(home: string): Promise<string | undefined> {
  const path = join(home, 'server.json');
  try {
    const text = await readIfThere(path);
    return text === undefined ? undefined : checkUrl(serverFile.parse(JSON.parse(text)).url);
  } catch (error) {
    const reason = isErrno(error) ? error.message : `${path} does not name a server`;
    throw new MillraceError('bad_configuration', `${reason}; ${whatToDo}`, { cause: error });
  }
}

function isErrno(error: unknown): error is Error {
  return error instanceof Error && typeof Reflect.get(error, 'errno') === 'number';
}

/** `up` writes no file for a key from MILLRACE_ROOT_KEY, so the variable is read as well. */
async function readRootKey(home: string, env: Environment): Promise<string | undefined> {
  const path = join(home, 'root-key');
  try {
    return given(readSecretVariable(env, 'MILLRACE_ROOT_KEY')) ?? given(await readIfThere(path));
  } catch (error) {
    const reason = error instanceof Error ? error.message : '';
    throw new MillraceError('unauthenticated', `the key cannot be read (${reason}); set MILLRACE_KEY`, {
      cause: error,
    });
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, 'code') === 'ENOENT') return undefined;
    throw error;
  }
}
