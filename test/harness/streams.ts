/** Reads a streamed response body piece by piece, as text. */

export interface TextStream {
  /** Returns the text read since the last call, once it satisfies `done`; throws if the body ends first. */
  until(done: (text: string) => boolean): Promise<string>;
  /** Returns the rest, up to the end of the body. */
  rest(): Promise<string>;
  /** Cancels the stream, like a client that disconnects. */
  leave(): Promise<void>;
}

export function readText(response: Response): TextStream {
  if (response.body === null) throw new Error('the response has no body');
  const body: ReadableStream<Uint8Array> = response.body;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  const more = async (): Promise<boolean> => {
    const { done, value } = await reader.read();
    if (!done) text += decoder.decode(value, { stream: true });
    return !done;
  };
  const take = (): string => {
    const taken = text;
    text = '';
    return taken;
  };
  return {
    async until(done) {
      while (!done(text)) if (!(await more())) throw new Error(`the body ended early, after: ${text}`);
      return take();
    },
    async rest() {
      while (await more());
      return take();
    },
    leave: () => reader.cancel(),
  };
}
