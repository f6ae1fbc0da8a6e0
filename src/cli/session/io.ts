/** The environment of a command. Nothing in `cli/` reads `process`, so that tests can replace it. */

export interface Sink extends NodeJS.WritableStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
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
  /** Aborts when the user presses Ctrl-C. A command that follows something then ends with 130. */
  readonly signal?: AbortSignal | undefined;
}

/** Writes, and waits until the stream can take more. Returns early if the stream is closed or fails. */
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
