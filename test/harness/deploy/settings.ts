/** What manifests say about Millrace, compared with the product: variables with the configuration, commands with the command line. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { RoleCommands } from '../../../src/cli/commands/server/role-commands.ts';
import { readConfig, secretVariables } from '../../../src/config.ts';
import { shell } from '../cli/shell.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
export const textOf = (path: string): string => readFileSync(`${root}/${path}`, 'utf8');

const dockerfile = textOf('Dockerfile');
/** The version, the user, the volume and the settings of the image. */
export const image = {
  version: /image\.version="(.+?)"/.exec(dockerfile)?.[1],
  user: Number(/^USER (\d+):\1$/m.exec(dockerfile)?.[1]),
  volume: /^VOLUME (\S+)$/m.exec(dockerfile)?.[1] ?? '',
  env: { MILLRACE_HOME: /MILLRACE_HOME=(\S+)/.exec(dockerfile)?.[1] ?? '' },
};

const known: ReadonlySet<string> = new Set([...readConfig({}).settings.map(({ name }) => name), ...secretVariables]);

/** Variables that the product does not read, and values that it rejects. Files with secrets are not there. */
export function faultsOfSettings(env: Readonly<Record<string, string>>): string[] {
  const unknown = Object.keys(env).filter((name) => !known.has(name));
  try {
    readConfig(Object.fromEntries(Object.entries(env).filter(([name]) => !name.endsWith('_FILE'))));
    return unknown;
  } catch (error) {
    return [...unknown, String(error)];
  }
}

const roleNames = ['up', 'down', 'api', 'launcher', 'host', 'courier', 'conductor', 'worker'] as const;

/** The role that a command line starts, with its options; undefined if the command line rejects it. */
export async function roleOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const started: { role: string; options: object }[] = [];
  const entries = roleNames.map((role) => [
    role,
    async (options: object): Promise<void> => void started.push({ role, options }),
  ]);
  await shell(argv, { roles: Object.fromEntries(entries) as Partial<RoleCommands>, env });
  return started[0];
}
