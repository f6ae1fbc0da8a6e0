/**
 * Credentials for registries, as the docker command finds them: `MILLRACE_DOCKER_AUTH` (the content of a `config.json`), else the
 * file `config.json` of `DOCKER_CONFIG` or `~/.docker`: a helper for the registry (`credHelpers`), the helper for all
 * (`credsStore`), then `auths`. The file is read at each pull, so that a new login takes effect at once.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);

const config = z.looseObject({
  auths: z
    .record(z.string(), z.looseObject({ auth: z.string().optional(), identitytoken: z.string().optional() }))
    .optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
  credsStore: z.string().optional(),
});
type DockerConfig = z.infer<typeof config>;

type Environment = Readonly<Record<string, string | undefined>>;

export interface LoginSources {
  /** The content of a `config.json`; without it, the file. */
  readonly auth?: string | undefined;
  readonly environment: Environment;
}

const dockerHub = 'https://index.docker.io/v1/';
const helperMs = 10_000;

/** The header `X-Registry-Auth` for an image; undefined: there is no login for its registry. Throws an error for users. */
export async function findLogin(image: string, { auth, environment }: LoginSources): Promise<string | undefined> {
  const parsed = auth === undefined ? await readConfig(environment) : parseConfig(auth, 'MILLRACE_DOCKER_AUTH');
  if (parsed === undefined) return undefined;
  const registry = registryOf(image);
  const names = registry === dockerHub ? [registry, 'index.docker.io', 'docker.io'] : [registry, `https://${registry}`];
  const login = (await fromHelper(parsed, names, environment)) ?? fromAuths(parsed, names);
  return login === undefined ? undefined : encode({ ...login, serveraddress: registry });
}

/**
 * base64url with padding, which Node's `base64url` leaves out: Docker 20.10 then ignores the credentials silently, and podman
 * answers 400.
 */
function encode(login: object): string {
  return Buffer.from(JSON.stringify(login)).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/** The first part names a registry if it looks like a host. */
function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  return rest.length > 0 && (/[.:]/.test(first) || first === 'localhost') ? first : dockerHub;
}

async function readConfig(environment: Environment): Promise<DockerConfig | undefined> {
  const folder = environment['DOCKER_CONFIG'] || join(environment['HOME'] || homedir(), '.docker');
  const path = join(folder, 'config.json');
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  });
  return text === undefined ? undefined : parseConfig(text, path);
}

/** The message never quotes the text, which holds passwords. */
function parseConfig(text: string, where: string): DockerConfig {
  try {
    return config.parse(JSON.parse(text));
  } catch {
    throw new Error(`${where} is not a configuration of docker: {"auths": {"REGISTRY": {"auth": "…"}}}`);
  }
}

interface Login {
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
}

function fromAuths({ auths = {} }: DockerConfig, names: readonly string[]): Login | undefined {
  const entry = names.map((name) => auths[name]).find((each) => each !== undefined);
  if (entry?.identitytoken !== undefined) return { identitytoken: entry.identitytoken };
  if (entry?.auth === undefined) return undefined;
  const text = Buffer.from(entry.auth, 'base64').toString('utf8');
  const at = text.indexOf(':');
  return at < 0 ? undefined : { username: text.slice(0, at), password: text.slice(at + 1) };
}

const answered = z.object({ Username: z.string(), Secret: z.string() });

async function fromHelper(
  { credHelpers = {}, credsStore }: DockerConfig,
  names: readonly string[],
  environment: Environment,
): Promise<Login | undefined> {
  const helper = names.map((name) => credHelpers[name]).find((each) => each !== undefined) ?? credsStore;
  if (helper === undefined) return undefined;
  if (!/^[\w.-]+$/.test(helper)) throw new Error(`the helper "${helper}" of docker's configuration is not a name`);
  for (const name of names) {
    const found = await askHelper(helper, name, environment);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function askHelper(helper: string, registry: string, environment: Environment): Promise<Login | undefined> {
  const asking = run(`docker-credential-${helper}`, ['get'], {
    timeout: helperMs,
    env: { PATH: environment['PATH'], HOME: environment['HOME'] },
  });
  asking.child.stdin?.on('error', () => {}); // it has ended, which `asking` reports
  asking.child.stdin?.end(registry);
  try {
    const { Username, Secret } = answered.parse(JSON.parse((await asking).stdout));
    return Username === '<token>' ? { identitytoken: Secret } : { username: Username, password: Secret };
  } catch (error) {
    // a helper answers with exit code 1 if it has no such login
    if (error instanceof Error && Reflect.get(error, 'code') === 1) return undefined;
    throw new Error(`docker-credential-${helper} failed`, { cause: error });
  }
}
