/** Reads a stream of bytes as chunks and as lines. */
import type { IncomingMessage } from 'node:http';

/** Ends without an error if the connection breaks; `response.complete` is false then. */
export async function* chunksOf(response: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    yield* response as AsyncIterable<Uint8Array>;
  } catch {
    // the caller checks `response.complete`
  }
}

/** Lines end in LF, CR or CRLF. The last line may have no terminator. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    yield* lines;
  }
  rest += decoder.decode();
  if (rest !== '') yield rest.replace(/\r$/, '');
}
