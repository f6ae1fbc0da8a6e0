/**
 * Watches over the containers of this process: a shell at the other end of a pipe. When the pipe closes before the worker has said
 * that nothing is left, the shell becomes `container-reaper.js`. Until then it takes 0.4 MB of memory.
 */
import type { Log } from '../../kernel/log.ts';
import { PipeShell } from '../process/pipe-shell.ts';
import { dockerVariables, type EngineSettings } from './engine-address.ts';

const script = `
trap '' HUP INT TERM
last=
while read -r line; do last=$line; done
[ "$last" = clean ] || exec "$@"
`;

export interface ReaperOptions {
  /** The path of the built `container-reaper.ts`. */
  readonly program: string;
  readonly owner: string;
  readonly engine: EngineSettings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log?: Log | undefined;
}

export class Reaper {
  readonly #shell: PipeShell;
  #started: Promise<void> | undefined;

  constructor({ program, owner, engine: { host, certs }, environment, log }: ReaperOptions) {
    const env = {
      ...pick(environment, ['PATH', ...dockerVariables]),
      ...(host === undefined ? {} : { MILLRACE_DOCKER_HOST: host }),
      ...(certs === undefined ? {} : { MILLRACE_DOCKER_CERTS: certs }),
    };
    this.#shell = new PipeShell({
      script,
      args: [process.execPath, program, owner],
      env,
      log,
      about: 'reaper of containers ended, retrying; without it, containers outlive a worker that dies',
      state: () => [],
    });
  }

  start(): Promise<void> {
    this.#started ??= this.#shell.start().catch((error: unknown) => {
      this.#started = undefined;
      throw error;
    });
    return this.#started;
  }

  async stop(isClean: boolean): Promise<void> {
    if (this.#started === undefined) return;
    this.#started = undefined;
    if (isClean) this.#shell.send('clean');
    await this.#shell.stop();
  }
}

function pick(environment: ReaperOptions['environment'], names: readonly string[]): Record<string, string> {
  const given = names.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(given);
}
