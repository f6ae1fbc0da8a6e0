/**
 * One task in a container: image, container, start, output and end, removal.
 *
 * ```
 *  create ──▶ start ──▶ running ──▶ ended ──▶ output complete ──▶ outcome
 *    │ no image   │ refused: error    │ killed: SIGTERM, SIGKILL after the grace
 *    ▼            ▼                   ▼
 *   pull        removal, in the background, whatever happened
 * ```
 *
 * 1. A broken connection means that the engine is away. Each step repeats when it is back, and none takes effect twice.
 * 2. A container that may exist is removed, also if its creation was not answered. The engine may still create it after that: the
 *    next sweep finds it.
 * 3. The end of the container is the end of the run. Its output is read to the end then, as far as the engine has it.
 */
import { randomBytes } from 'node:crypto';
import { pause, within } from '../../kernel/service.ts';
import { failed, faulty, graceMs, lost, type Outcome, type Output, type Task } from '../contract.ts';
import type { DockerWork } from './block.ts';
import {
  createContainer,
  inspectContainer,
  signalContainer,
  startContainer,
  waitForEnd,
  whileAway,
} from './container-calls.ts';
import { outcomeOf } from './container-end.ts';
import { ContainerLog } from './container-log.ts';
import { type EngineClient, EngineError, EngineUnreachable } from './engine-client.ts';
import { type ImagePulls, PullError } from './image-pulls.ts';
import type { ContainerTimes } from './limits.ts';
import type { Removals } from './removals.ts';

/** The timeout of the question why a container has ended. */
const inspectMs = 2_000;
/** The pause after an answer that ended although the container runs. */
const followAgainMs = 100;

export interface ContainerTools {
  readonly client: EngineClient;
  readonly pulls: ImagePulls;
  readonly removals: Removals;
  /** The names of containers of runs under way. */
  readonly open: Set<string>;
  /** The engine may still create a container of a run that has ended. */
  readonly onUnsure: () => void;
  readonly times: ContainerTimes;
  /** podman answers 0 to those who wait for a container that somebody removes. */
  readonly isPodman: boolean;
  /** Whether the engine accepts a connection now. */
  readonly isAway: () => Promise<boolean>;
}

export class ContainerRun {
  readonly #tools: ContainerTools;
  readonly #work: DockerWork;
  readonly #spec: unknown;
  readonly #output: Output;
  readonly #signal: AbortSignal;
  readonly #name: string;
  #wasAway = false;

  constructor(
    tools: ContainerTools,
    { facts }: Task,
    work: DockerWork,
    how: { spec: unknown; output: Output; signal: AbortSignal },
  ) {
    this.#tools = tools;
    this.#work = work;
    this.#spec = how.spec;
    this.#output = how.output;
    this.#signal = how.signal;
    // tenants that are copies of one database have the same run ids
    this.#name = `millrace-${facts.run}-${facts.lease}-${randomBytes(4).toString('hex')}`;
  }

  async execute(): Promise<Outcome> {
    let container: string | undefined;
    this.#tools.open.add(this.#name);
    try {
      if (this.#work.pull === 'always') await this.#pull();
      container = await this.#create();
      return (await this.#start(container)) ?? (await this.#finish(container));
    } catch (error) {
      if (container === undefined && this.#signal.aborted) this.#tools.onUnsure();
      if (this.#signal.aborted) return failed('it was stopped before it began');
      if (error instanceof PullError) return faulty(error.message);
      if (error instanceof EngineError) return faulty(`the Docker engine refused its container: ${error.message}`);
      throw error;
    } finally {
      this.#tools.removals.add(container ?? this.#name);
      this.#tools.open.delete(this.#name);
    }
  }

  async #create(): Promise<string> {
    try {
      return await this.#createOnce();
    } catch (error) {
      const isImageMissing = error instanceof EngineError && error.status === 404;
      if (!isImageMissing || this.#work.pull === 'never') throw error;
      await this.#pull();
      return await this.#createOnce();
    }
  }

  #createOnce(): Promise<string> {
    return createContainer(this.#tools.client, this.#name, this.#spec, this.#signal);
  }

  #pull(): Promise<void> {
    const say = (line: string): void => this.#say(line);
    const { pulls } = this.#tools;
    return whileAway(() => pulls.pull(this.#work.image, say, this.#signal), { signal: this.#signal });
  }

  /** Returns the outcome if the container cannot be started. */
  async #start(container: string): Promise<Outcome | undefined> {
    try {
      const onAway = (): void => this.#noteAway();
      await startContainer(this.#tools.client, container, { signal: this.#signal, onAway });
      return undefined;
    } catch (error) {
      if (!(error instanceof EngineError)) {
        // the answer was not awaited, and it may run
        if (this.#signal.aborted) return await this.#finish(container);
        throw error;
      }
      if (await this.#tools.isAway()) return lost('the Docker engine stopped while it started the container');
      return faulty(`the container could not be started: ${error.message}`);
    }
  }

  async #finish(container: string): Promise<Outcome> {
    const { client } = this.#tools;
    const over = new AbortController();
    const onAway = (): void => this.#noteAway();
    const ending = waitForEnd(client, container, { signal: over.signal, onAway });
    const reading = this.#read(container, ending);
    const kill = this.#armKill(container, ending);
    try {
      const end = await Promise.race([ending.then((exitCode) => ({ exitCode })), kill.givenUp]);
      if (end === undefined) return failed('it was stopped; the Docker engine did not answer in time');
      const explaining = this.#confirm(container, end.exitCode).then((code) => this.#explain(container, code));
      await reading;
      return await explaining;
    } finally {
      kill.disarm();
      over.abort();
    }
  }

  /** Whether an exit code of podman is that of the container; undefined: the container is gone. */
  async #confirm(container: string, exitCode: number | undefined): Promise<number | undefined> {
    const { client, isPodman } = this.#tools;
    if (!isPodman || exitCode !== 0 || this.#signal.aborted) return exitCode;
    const found = await whileAway(() => inspectContainer(client, container, this.#signal), {
      signal: this.#signal,
    });
    return found?.State.ExitCode;
  }

  /** Asks at once, because an engine that ended the container may soon be back. */
  async #explain(container: string, exitCode: number | undefined): Promise<Outcome> {
    const { client, isAway } = this.#tools;
    const wasKilled = this.#signal.aborted;
    const { memoryBytes } = this.#work;
    const isClear = exitCode === 0 || wasKilled;
    const engineIsAway = !isClear && (await isAway());
    const inspecting = isClear || engineIsAway ? undefined : inspectContainer(client, container);
    const found = await within(
      inspectMs,
      Promise.resolve(inspecting).catch(() => undefined),
    );
    const outOfMemory = found?.State.OOMKilled ?? false;
    return outcomeOf({ exitCode, outOfMemory, memoryBytes, engineWasAway: this.#wasAway, engineIsAway, wasKilled });
  }

  /**
   * Follows the output until the container has ended, and reads the rest: engines end the answer to a follower before the last lines,
   * now and then. Never throws: output is not worth a run.
   */
  async #read(container: string, ending: Promise<unknown>): Promise<void> {
    const { client } = this.#tools;
    const log = new ContainerLog(client, container, this.#output);
    let hasEnded = false;
    const ended = ending.then(
      () => void (hasEnded = true),
      () => void (hasEnded = true),
    );
    const cut = new AbortController();
    const following = this.#follow(log, cut.signal, () => hasEnded);
    await ended;
    if (!(await this.#waitForQuiet(log, following))) cut.abort();
    await following;
    if (this.#signal.reason === 'lost') return;
    const rest = new AbortController();
    const reading = log.read({ follow: false, signal: rest.signal }).catch(() => {});
    if (!(await this.#waitForQuiet(log, reading))) rest.abort();
  }

  /** Follows again after a broken connection, until the container has ended. */
  async #follow(log: ContainerLog, signal: AbortSignal, hasEnded: () => boolean): Promise<void> {
    while (!signal.aborted) {
      try {
        await log.read({ follow: true, signal });
      } catch (error) {
        if (error instanceof EngineError || signal.aborted) return;
        if (isBroken(error)) this.#noteAway();
      }
      if (hasEnded()) return;
      await pause(followAgainMs, signal);
    }
  }

  /** False: the output did not end although nothing came for a while. A full sink is waited for. */
  async #waitForQuiet(log: ContainerLog, following: Promise<void>): Promise<boolean> {
    const done = following.then(() => true);
    for (let before = Number.NaN; ; ) {
      if (await within(this.#tools.times.lingerMs, done)) return true;
      if (log.progress === before || this.#signal.reason === 'lost') return false;
      before = log.progress;
    }
  }

  /** `givenUp` resolves if a stopping worker cannot wait for the engine any longer. */
  #armKill(container: string, ending: Promise<unknown>): { readonly givenUp: Promise<undefined>; disarm(): void } {
    let strike = (): void => {};
    const givenUp = new Promise<undefined>((resolve) => {
      strike = () => void this.#kill(container, ending).then((isOver) => isOver || resolve(undefined));
    });
    if (this.#signal.aborted) strike();
    else this.#signal.addEventListener('abort', strike, { once: true });
    return { givenUp, disarm: () => this.#signal.removeEventListener('abort', strike) };
  }

  /** Resolves with false if the container may still run, and cannot be waited for. */
  async #kill(container: string, ending: Promise<unknown>): Promise<boolean> {
    const { client, times } = this.#tools;
    const over = new AbortController();
    const ended = ending.then(
      () => true,
      () => true,
    );
    void ended.then(() => over.abort());
    const send = (name: 'SIGTERM' | 'SIGKILL'): void =>
      void whileAway(() => signalContainer(client, container, name, over.signal), { signal: over.signal }).catch(
        () => {},
      );
    send('SIGTERM');
    if (await within(graceMs(this.#signal, times.graceMs), ended)) return true;
    send('SIGKILL');
    const reason: unknown = this.#signal.reason;
    if (reason !== 'draining' && reason !== 'lost') return await ended;
    return (await within(times.giveUpMs, ended)) ?? false;
  }

  #noteAway(): void {
    if (!this.#wasAway) this.#say('the connection to the Docker engine is broken; waiting for it');
    this.#wasAway = true;
  }

  #say(line: string): void {
    void this.#output.write('err', Buffer.from(`[millrace] ${line}\n`));
  }
}

/** Whether the connection broke, as opposed to an answer that makes no sense. */
function isBroken(error: unknown): boolean {
  return error instanceof EngineUnreachable || (error instanceof Error && 'code' in error);
}
