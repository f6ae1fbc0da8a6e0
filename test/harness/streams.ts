/** Reads a streamed body piece by piece, as text. */

export interface TextStream {
  /** Everything read so far that was not given out yet, once it satisfies the test; throws when the body ends first. */
  until(done: (text: string) => boolean): Promise<string>;
  /** The rest, to the body's own end. */
  rest(): Promise<string>;
  /** Goes away, as a client does. */
  leave(): Promise<void>;
}

export function readText(response: Response): TextStream {
  if (response.body === null) throw new Error('the answer has no body');
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
