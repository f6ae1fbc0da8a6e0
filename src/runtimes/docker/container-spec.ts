/** The body of `POST /containers/create` for a task. Pure, but for the check of folders, which is passed in. */
import type { DockerWork } from './block.ts';
import type { EngineFacts } from './engine-facts.ts';
import { defaultPids, logFileBytes, oomScore } from './limits.ts';
import type { Volume } from './volume.ts';

/** What a worker allows, and the mark of its containers. */
export interface ContainerRules {
  readonly networks: readonly string[];
  /** The source to mount, or throws `RefusedField`. */
  readonly resolve: (volume: Volume) => string;
  readonly facts: EngineFacts;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
}

/** The engine or the worker cannot honour a field; the message begins with its path. */
export class RefusedField extends Error {
  override readonly name = 'RefusedField';
}

export function containerSpec(work: DockerWork, rules: ContainerRules): Record<string, unknown> {
  return {
    Image: work.image,
    ...(work.args.length === 0 ? {} : { Cmd: work.args }),
    ...(work.entrypoint === undefined ? {} : { Entrypoint: work.entrypoint }),
    ...(work.cwd === undefined ? {} : { WorkingDir: work.cwd }),
    ...(work.user === undefined ? {} : { User: work.user }),
    Env: Object.entries(rules.env).map(([name, value]) => `${name}=${value}`),
    Labels: rules.labels,
    HostConfig: hostConfig(work, rules),
  };
}

function hostConfig(work: DockerWork, { facts, networks, resolve }: ContainerRules): Record<string, unknown> {
  const { memoryBytes, cpus, pids } = work;
  refuseUnless(memoryBytes === undefined || facts.limits.memory, 'docker.memory', 'limit memory');
  refuseUnless(cpus === undefined || facts.limits.cpus, 'docker.cpus', 'limit processors');
  refuseUnless(pids === undefined || facts.limits.pids, 'docker.pids', 'limit processes');
  return {
    NetworkMode: chooseNetwork(work.network, networks),
    Init: facts.hasInit,
    ...(memoryBytes === undefined ? {} : { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(cpus === undefined ? {} : { NanoCpus: Math.round(cpus * 1e9) }),
    ...(facts.limits.pids ? { PidsLimit: pids ?? defaultPids } : {}),
    OomScoreAdj: oomScore,
    SecurityOpt: ['no-new-privileges'],
    RestartPolicy: { Name: 'no' },
    AutoRemove: false,
    LogConfig: logConfig(facts),
    Mounts: work.volumes.map((volume, index) => mount(volume, index, resolve)),
  };
}

function refuseUnless(holds: boolean, path: string, what: string): void {
  if (!holds) throw new RefusedField(`${path}: the engine of this worker cannot ${what}`);
}

function chooseNetwork(wished: string | undefined, networks: readonly string[]): string {
  if (wished === undefined) return networks[0] ?? 'none';
  if (wished === 'none' || networks.includes(wished)) return wished;
  const allowed = [...new Set(['none', ...networks])].join(', ');
  throw new RefusedField(
    `docker.network: this worker does not allow the network "${wished}", only ${allowed} (MILLRACE_DOCKER_NETWORK)`,
  );
}

function logConfig({ logDriver }: EngineFacts): Record<string, unknown> {
  if (logDriver !== 'local') return { Type: logDriver, Config: { 'max-size': String(logFileBytes) } };
  return {
    Type: logDriver,
    Config: { 'max-size': String(logFileBytes), 'max-file': '2', compress: 'false' },
  };
}

function mount(volume: Volume, index: number, resolve: ContainerRules['resolve']): Record<string, unknown> {
  const { source, target, readOnly } = volume;
  const isFolder = source.startsWith('/');
  try {
    return { Type: isFolder ? 'bind' : 'volume', Source: resolve(volume), Target: target, ReadOnly: readOnly };
  } catch (error) {
    if (error instanceof RefusedField) throw new RefusedField(`docker.volumes[${index}]: ${error.message}`);
    throw error;
  }
}
