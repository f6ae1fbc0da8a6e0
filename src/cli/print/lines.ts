/** Bytes that come bit by bit, as chunks and as lines. */
import type { IncomingMessage } from 'node:http';

/** A broken connection ends the chunks as a finished one does; `response.complete` tells which it was. */
export async function* chunksOf(response: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    yield* response as AsyncIterable<Uint8Array>;
  } catch {
    // told by `complete`
  }
}

/** Lines end in LF, CR or CRLF; the last one may have no end. */
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
