/** Times and limits of containers. */
export interface ContainerTimes {
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** How long the end of the output is waited for after the container has ended, not counting a full sink. */
  readonly lingerMs: number;
  /** How long a stopping worker waits for an engine that does not kill a container. Later the reaper does it. */
  readonly giveUpMs: number;
  /** Between two searches for containers whose worker is gone. */
  readonly sweepMs: number;
  /** The timeout of a question whether the engine accepts connections. */
  readonly pingMs: number;
}

export const containerTimes: ContainerTimes = {
  graceMs: 5_000,
  lingerMs: 2_000,
  giveUpMs: 500,
  sweepMs: 60_000,
  pingMs: 4_000,
};

/** Processes of a container without a limit of its own: enough for any build, too few for a fork bomb to fill a machine. */
export const defaultPids = 4_096;
/** The kernel ends tasks before Millrace when memory runs out, as for processes. */
export const oomScore = 500;
/** Bytes of output that the engine stores until they are read, in two files. */
export const logFileBytes = 16 * 1024 * 1024;
