/** Reads a stream of server-sent events. */
import { readLines } from '../print/lines.ts';

export interface ServerEvent {
  /** Empty if the stream has not sent an id yet. */
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Skips comments, events without data, and an incomplete event at the end of the stream. */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let id = '';
  let event = '';
  let data: string[] = [];
  for await (const line of readLines(chunks)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      continue;
    }
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'id') id = value;
    if (name === 'event') event = value;
    if (name === 'data') data.push(value);
  }
}
