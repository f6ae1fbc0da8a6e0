/** What a command is given of the world around it. Nothing in `cli/` reads `process`, so tests can stand in for a shell. */

export interface Sink extends NodeJS.WritableStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

interface Source extends NodeJS.ReadableStream {
  readonly isTTY?: boolean | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Io {
  /** The answer. */
  readonly stdout: Sink;
  /** For people: progress, hints, errors. */
  readonly stderr: Sink;
  readonly stdin: Source;
  readonly env: Environment;
  readonly cwd: string;
  /** Aborts when the user wants out (Ctrl-C); a command that follows something then ends with 130. */
  readonly signal?: AbortSignal | undefined;
}

/** Writes, and waits while the other end is slow. Ends early when the stream has broken. */
export async function write(sink: Sink, chunk: string | Uint8Array): Promise<void> {
  if (sink.write(chunk) || !sink.writable) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      for (const event of ['drain', 'close', 'error']) sink.removeListener(event, done);
      resolve();
    };
    for (const event of ['drain', 'close', 'error']) sink.once(event, done);
  });
}
