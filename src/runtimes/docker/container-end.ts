/**
 * What the end of a container means:
 *
 * | observation | outcome |
 * |---|---|
 * | exit code 0 | success |
 * | the engine says that memory ran out | failure, with the limit |
 * | another exit code, and the engine is away | `lost`: engines kill containers when they stop |
 * | the exit code of a kill, and the engine was away meanwhile | `lost`: engines kill containers when they start again |
 * | killed with a limit of memory, by an engine that does not tell why (podman) | failure, with a hint |
 * | another exit code | failure |
 * | the container is gone | `lost`, if the engine was away; else an error: somebody removed it |
 */
import { failed, faulty, lost, type Outcome, success } from '../contract.ts';
import { formatBytes } from './volume.ts';

export interface ContainerEnd {
  /** Undefined: the container does not exist any more. */
  readonly exitCode: number | undefined;
  readonly outOfMemory: boolean;
  readonly memoryBytes: number | undefined;
  /** A connection to the engine broke while it ran. */
  readonly engineWasAway: boolean;
  /** The engine accepts no connection right after its end. */
  readonly engineIsAway: boolean;
  readonly wasKilled: boolean;
}

const sigKill = 128 + 9;
/** The codes with which a container ends when its engine is started again: SIGTERM, SIGKILL, unknown. */
const codesOfEngines: ReadonlySet<number> = new Set([128 + 15, sigKill, 255]);

/** What shells and init programs mean by these codes. */
const hints: Readonly<Record<number, string>> = {
  126: ' (a command could not be executed)',
  127: ' (a command was not found)',
};

export function outcomeOf(end: ContainerEnd): Outcome {
  const { exitCode, outOfMemory, memoryBytes, engineWasAway, engineIsAway, wasKilled } = end;
  if (exitCode === undefined)
    return engineWasAway || engineIsAway
      ? lost('its container disappeared while the Docker engine was away')
      : faulty('its container was removed by somebody while it ran');
  if (exitCode === 0) return { ...success, exitCode: 0 };
  const limit = memoryBytes === undefined ? '' : ` (limit ${formatBytes(memoryBytes)})`;
  if (outOfMemory) return failed(`it ran out of memory${limit}`, exitCode);
  if (wasKilled) return failed(`it was stopped, and ended with exit code ${exitCode}`, exitCode);
  if (engineIsAway || (engineWasAway && codesOfEngines.has(exitCode)))
    return lost(`the Docker engine stopped, and ended its container with exit code ${exitCode}`);
  if (exitCode === sigKill && memoryBytes !== undefined)
    return failed(`it was killed; probably it ran out of memory${limit}`, exitCode);
  return failed(`it ended with exit code ${exitCode}${hints[exitCode] ?? ''}`, exitCode);
}
