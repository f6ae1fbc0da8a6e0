/**
 * Answers that go on: a generator's chunks as a response body. The generator starts when the first chunk is asked for
 * and never runs ahead of its reader; when the client goes, its signal aborts and it is ended.
 */

/** What the generator throws ends the body; `onFault` hears of it, since the status has been sent by then. */
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
