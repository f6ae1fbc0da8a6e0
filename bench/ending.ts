/** Cleanup of servers, processes and folders that must not outlive a benchmark, however it ends. Runs newest first. */

type Undo = () => Promise<void>;

const undos = new Set<Undo>();

/** Registers `work` for the end and returns a function that runs it earlier. It runs once, whichever comes first. */
export function atEnd(work: Undo): Undo {
  const undo = async (): Promise<void> => {
    if (undos.delete(undo)) await work();
  };
  undos.add(undo);
  return undo;
}

export async function endAll(): Promise<void> {
  for (const undo of [...undos].toReversed()) {
    await undo().catch((error: unknown) => process.stderr.write(`cleanup failed: ${String(error)}\n`));
  }
}

/** Cleans up on Ctrl-C, or when a test times out and ends the benchmark. */
export function endOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => void endAll().finally(() => process.exit(130)));
  }
}
