/** What an engine can do, asked when it becomes reachable: the version of its API, an init program, how it stores logs. */
import { z } from 'zod';
import type { EngineClient } from './engine-client.ts';

export interface EngineFacts {
  readonly isPodman: boolean;
  /** It has a small first process for containers, which passes signals on and waits for orphans. */
  readonly hasInit: boolean;
  readonly limits: { readonly memory: boolean; readonly cpus: boolean; readonly pids: boolean };
  /** How output is stored until it is read. Docker's `local` keeps bytes as they are; its json-file replaces invalid UTF-8. */
  readonly logDriver: string;
}

const info = z.object({
  InitBinary: z.string().nullish(),
  InitCommit: z.object({ ID: z.string().nullish() }).nullish(),
  MemoryLimit: z.boolean().default(true),
  CpuCfsQuota: z.boolean().default(true),
  PidsLimit: z.boolean().default(true),
  Plugins: z.object({ Log: z.array(z.string()).nullish() }).nullish(),
});

const versions = z.object({
  ApiVersion: z.string().default(''),
  Components: z.array(z.object({ Name: z.string() })).nullish(),
});

/** Docker Engine 20.10, podman 4. */
const leastApi = [1, 41] as const;

/** Why this engine cannot be used; undefined: it can. */
export async function checkEngine(client: EngineClient, signal: AbortSignal): Promise<string | undefined> {
  const { headers } = await client.call({ method: 'GET', path: '/_ping', signal });
  const version = String(headers['api-version'] ?? '');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > leastApi[0] || (major === leastApi[0] && minor >= leastApi[1])) return undefined;
  return `the Docker engine at ${client.name} has the API ${version === '' ? 'of an unknown version' : version}; at least ${leastApi.join('.')} is needed`;
}

export async function readFacts(client: EngineClient, signal?: AbortSignal): Promise<EngineFacts> {
  const [about, version] = await Promise.all([
    client.call({ method: 'GET', path: '/info', signal }),
    client.call({ method: 'GET', path: '/version', signal }),
  ]);
  const parsed = info.parse(about.body);
  const isPodman = versions.parse(version.body).Components?.some(({ Name }) => Name.startsWith('Podman')) ?? false;
  return {
    isPodman,
    // Docker names a program that is not installed, too, and its version is then "N/A"
    hasInit: (parsed.InitBinary ?? '') !== '' && parsed.InitCommit?.ID !== 'N/A',
    limits: { memory: parsed.MemoryLimit, cpus: parsed.CpuCfsQuota, pids: parsed.PidsLimit },
    logDriver: parsed.Plugins?.Log?.includes('local') ? 'local' : 'json-file',
  };
}
