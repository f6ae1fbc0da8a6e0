/**
 * Streams the chunks of a generator as a response body. The generator starts when the first chunk is requested and never runs
 * ahead of its reader. When the client disconnects, its signal aborts and it ends.
 */

/** An error of the generator ends the body and goes to `onFault`, because the status has already been sent. */
export function streamOf(
  chunks: (signal: AbortSignal) => AsyncGenerator<Uint8Array, void, undefined>,
  onFault: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  let source: AsyncGenerator<Uint8Array, void, undefined> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        source ??= chunks(gone.signal);
        try {
          const next = await source.next();
          if (gone.signal.aborted) return;
          if (next.done) controller.close();
          else controller.enqueue(next.value);
        } catch (error) {
          if (gone.signal.aborted) return;
          onFault(error);
          controller.error(error);
        }
      },
      async cancel() {
        gone.abort();
        await source?.return();
      },
    },
    { highWaterMark: 0 },
  );
}
