/**
 * The runtime `docker`: containers of a Docker engine, or of podman, over the Engine API.
 *
 * 1. A task is a container. The run is over when the container has ended; all its processes end with it.
 * 2. A kill is soft (SIGTERM), then hard (SIGKILL) after a grace. Where the engine has an init program, it is the first process of
 *    the container: a first process without a handler ignores SIGTERM.
 * 3. An engine that is away delays a task. A container that the engine ended by itself is `lost`.
 * 4. Labels name the owner (`owner.ts`), installation, worker, tenant, run and lease; no label holds a secret. Containers whose
 *    worker has ended are removed by its reaper, by the next sweep of a worker on the machine, and by the worker that gets the run.
 * 5. Standard output and standard error are two streams, whose order between each other is not kept.
 */
import type { Log } from '../../kernel/log.ts';
import type { Service } from '../../kernel/service.ts';
import {
  failed,
  faulty,
  mismatch,
  type Outcome,
  type Output,
  type Runtime,
  type Task,
  type WorkerIdentity,
} from '../contract.ts';
import type { ContainerSettings } from '../factory.ts';
import { type AllowedVolumes, resolveVolume } from './allowed-volumes.ts';
import type { DockerWork } from './block.ts';
import { whileAway } from './container-calls.ts';
import { ContainerRun } from './container-run.ts';
import { containerSpec, RefusedField } from './container-spec.ts';
import { type EngineAddress, findEngine } from './engine-address.ts';
import { EngineClient, EngineError, EngineUnreachable } from './engine-client.ts';
import { checkEngine, type EngineFacts, readFacts } from './engine-facts.ts';
import { ImagePulls } from './image-pulls.ts';
import { containerTimes, type ContainerTimes } from './limits.ts';
import { labels, makeOwner } from './owner.ts';
import { OwnedContainers } from './owned-containers.ts';
import { Reaper } from './reaper.ts';
import { Removals } from './removals.ts';

export interface DockerOptions extends ContainerSettings {
  /** The worker's environment, with the variables of the docker command. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The path of the built `container-reaper.ts`. */
  readonly reaper: string;
  readonly times?: Partial<ContainerTimes>;
  readonly log?: Log | undefined;
  readonly worker: () => WorkerIdentity;
}

const usualNetworks = ['bridge'];

/** A runtime whose engine's address is not valid is unavailable, with that reason. */
export function dockerRuntime(options: DockerOptions): Runtime & { readonly service: Service } {
  const address = addressOf(options);
  if ('fault' in address) return unavailable(address.fault);
  return new DockerEngine(options, address).runtime();
}

function addressOf(options: DockerOptions): EngineAddress | { readonly fault: string } {
  try {
    return findEngine(options, options.environment);
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}

function unavailable(reason: string): Runtime & { readonly service: Service } {
  return {
    name: 'docker',
    serves: ['docker'],
    outlives: false,
    run: async () => faulty(reason),
    probe: async () => reason,
    service: { name: 'containers', start: async () => {}, stop: async () => {} },
  };
}

class DockerEngine {
  readonly #options: DockerOptions;
  readonly #client: EngineClient;
  readonly #times: ContainerTimes;
  readonly #pulls: ImagePulls;
  readonly #removals: Removals;
  readonly #owned: OwnedContainers;
  readonly #reaper: Reaper;
  readonly #owner = makeOwner();
  #facts: EngineFacts | undefined;
  /** The engine may still create a container that nothing here knows. */
  #isUnsure = false;
  /** The names of containers of runs under way. */
  readonly #open = new Set<string>();

  constructor(options: DockerOptions, address: EngineAddress) {
    const { environment, host, certs, log } = options;
    this.#options = options;
    this.#client = new EngineClient(address);
    this.#times = { ...containerTimes, ...options.times };
    this.#pulls = new ImagePulls({
      client: this.#client,
      auth: options.auth,
      environment,
      now: () => performance.now(),
    });
    this.#removals = new Removals(this.#client, log);
    this.#owned = new OwnedContainers(this.#client, { owner: this.#owner, open: this.#open }, log);
    this.#reaper = new Reaper({
      program: options.reaper,
      owner: this.#owner,
      engine: { host, certs },
      environment,
      log,
    });
  }

  runtime(): Runtime & { readonly service: Service } {
    const sweeps = this.#owned.sweeps(this.#times.sweepMs, () => this.#facts !== undefined);
    return {
      name: 'docker',
      serves: ['docker'],
      outlives: false,
      run: (task, output, signal) => this.#run(task, output, signal),
      probe: () => this.#probe(),
      adopt: () => this.#adopt(),
      service: {
        name: 'containers',
        start: () => sweeps.start(),
        stop: async (deadlineMs) => {
          await sweeps.stop(deadlineMs);
          await this.#stop();
        },
      },
    };
  }

  async #run(task: Task, output: Output, signal: AbortSignal): Promise<Outcome> {
    const { work } = task;
    if (work.kind !== 'docker') return mismatch('docker', work);
    if (signal.aborted) return failed('it was stopped before it began');
    try {
      const facts = this.#facts ?? (await whileAway(() => readFacts(this.#client, signal), { signal }));
      const spec = this.#specOf(task, work, facts);
      if (task.facts.lease > 1) await whileAway(() => this.#owned.endEarlierLeases(task.facts, signal), { signal });
      await this.#reaper.start();
      return await new ContainerRun(this.#tools(facts), task, work, { spec, output, signal }).execute();
    } catch (error) {
      if (error instanceof RefusedField) return faulty(error.message);
      if (signal.aborted) return failed('it was stopped before it began');
      throw error;
    }
  }

  #tools({ isPodman }: EngineFacts): ConstructorParameters<typeof ContainerRun>[0] {
    return {
      client: this.#client,
      pulls: this.#pulls,
      removals: this.#removals,
      open: this.#open,
      onUnsure: () => void (this.#isUnsure = true),
      times: this.#times,
      isPodman,
      isAway: () => this.#isAway(),
    };
  }

  #specOf({ facts: run, env }: Task, work: DockerWork, facts: EngineFacts): unknown {
    const { networks = [], volumes: allowed = [] } = this.#options;
    const { worker, incarnation } = this.#options.worker();
    const rules: AllowedVolumes = { allowed, isLocal: this.#client.isLocal };
    return containerSpec(work, {
      networks: networks.length === 0 ? usualNetworks : networks,
      resolve: (volume) => resolveVolume(volume, rules),
      facts,
      env,
      labels: {
        [labels.owner]: this.#owner,
        [labels.installation]: run.url,
        [labels.worker]: worker,
        [labels.incarnation]: String(incarnation),
        [labels.tenant]: run.tenant,
        [labels.run]: run.run,
        [labels.lease]: String(run.lease),
      },
    });
  }

  async #probe(): Promise<string | undefined> {
    const signal = AbortSignal.timeout(this.#times.pingMs);
    try {
      const reason = await checkEngine(this.#client, signal);
      // an engine that was replaced may have other abilities
      this.#facts = reason === undefined ? (this.#facts ?? (await readFacts(this.#client, signal))) : undefined;
      return reason;
    } catch (error) {
      this.#facts = undefined;
      if (signal.aborted) return `the Docker engine at ${this.#client.name} does not answer`;
      if (error instanceof EngineUnreachable) return error.message;
      if (error instanceof EngineError) return `the Docker engine at ${this.#client.name} answers: ${error.message}`;
      throw error;
    }
  }

  async #isAway(): Promise<boolean> {
    const signal = AbortSignal.timeout(this.#times.pingMs);
    return await this.#client.call({ method: 'GET', path: '/_ping', signal }).then(
      () => false,
      () => true,
    );
  }

  async #adopt(): Promise<void> {
    const { worker, incarnation } = this.#options.worker();
    await this.#owned.endEarlierIncarnations(worker, incarnation);
    await this.#owned.sweep();
  }

  /** What cannot be removed now is left to the reaper. */
  async #stop(): Promise<void> {
    await Promise.race([this.#removals.settled(), new Promise((resolve) => setTimeout(resolve, this.#times.giveUpMs))]);
    const isClean = this.#removals.pending === 0 && this.#open.size === 0 && !this.#isUnsure;
    this.#removals.abandon();
    await this.#reaper.stop(isClean);
  }
}
