/** What must not outlive a benchmark, however it ends: servers, processes, folders. Undone newest first. */

type Undo = () => Promise<void>;

const undos = new Set<Undo>();

/** Returns the same work, to be called when the time has come; what has not been by the end is done then. */
export function atEnd(work: Undo): Undo {
  const undo = async (): Promise<void> => {
    if (undos.delete(undo)) await work();
  };
  undos.add(undo);
  return undo;
}

export async function endAll(): Promise<void> {
  for (const undo of [...undos].toReversed()) {
    await undo().catch((error: unknown) => process.stderr.write(`something was left behind: ${String(error)}\n`));
  }
}

/** A Ctrl-C, or the end of a test's patience. */
export function endOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => void endAll().finally(() => process.exit(130)));
  }
}
