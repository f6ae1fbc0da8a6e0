/**
 * Pulls images. Tasks that need the same image at once share one pull, and each gets the progress in its log: a line for each
 * layer and step, at most once a second while it is being downloaded. A pull is cut off when its last task is killed.
 */
import { z } from 'zod';
import { type EngineClient, EngineError, EngineUnreachable } from './engine-client.ts';
import { findLogin, type LoginSources } from './registry-login.ts';

export interface PullOptions extends LoginSources {
  readonly client: EngineClient;
  readonly now: () => number;
}

/** An image could not be pulled; the message is the run's reason. */
export class PullError extends Error {
  override readonly name = 'PullError';
}

interface Pull {
  readonly done: Promise<void>;
  readonly listeners: Set<(line: string) => void>;
  readonly control: AbortController;
}

export class ImagePulls {
  readonly #options: PullOptions;
  readonly #pulls = new Map<string, Pull>();

  constructor(options: PullOptions) {
    this.#options = options;
  }

  /** Resolves when the image is there. Throws `PullError`, `EngineUnreachable`, or the reason of the signal. */
  async pull(image: string, say: (line: string) => void, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const pull = this.#pulls.get(image) ?? this.#begin(image);
    pull.listeners.add(say);
    let leave = (): void => {};
    const left = new Promise<never>((_, reject) => {
      leave = (): void => reject(signal.reason);
    });
    signal.addEventListener('abort', leave, { once: true });
    try {
      await Promise.race([pull.done, left]);
    } finally {
      signal.removeEventListener('abort', leave);
      pull.listeners.delete(say);
      if (pull.listeners.size === 0) pull.control.abort();
    }
  }

  #begin(image: string): Pull {
    const listeners: Pull['listeners'] = new Set();
    const control = new AbortController();
    const say = (line: string): void => {
      for (const listener of listeners) listener(line);
    };
    const done = this.#pull(image, say, control.signal).finally(() => {
      if (this.#pulls.get(image) === pull) this.#pulls.delete(image);
    });
    done.catch(() => {}); // those who wait for it handle it
    // a pull that is being cut off must not be joined
    control.signal.addEventListener('abort', () => {
      if (this.#pulls.get(image) === pull) this.#pulls.delete(image);
    });
    const pull = { done, listeners, control };
    this.#pulls.set(image, pull);
    return pull;
  }

  async #pull(image: string, say: (line: string) => void, signal: AbortSignal): Promise<void> {
    const { client, now } = this.#options;
    const startedAt = now();
    try {
      const login = await findLogin(image, this.#options);
      const stream = await client.stream({
        method: 'POST',
        path: '/images/create',
        query: splitTag(image),
        headers: login === undefined ? {} : { 'x-registry-auth': login },
        signal,
      });
      const progress = new PullProgress(say, now);
      for await (const line of lines(stream as AsyncIterable<Buffer>)) progress.note(line);
      say(`${image} pulled in ${((now() - startedAt) / 1_000).toFixed(1)} s`);
    } catch (error) {
      throw signal.aborted ? error : explain(error, image, client);
    }
  }
}

/** Without a tag an engine would pull all tags. */
function splitTag(image: string): { readonly fromImage: string; readonly tag?: string } {
  if (image.includes('@')) return { fromImage: image };
  const name = image.slice(image.lastIndexOf('/') + 1);
  const at = name.lastIndexOf(':');
  if (at < 0) return { fromImage: image, tag: 'latest' };
  return { fromImage: image.slice(0, image.length - name.length + at), tag: name.slice(at + 1) };
}

/** An engine that answered is to blame the image; a broken connection is the engine's doing. */
function explain(error: unknown, image: string, client: EngineClient): Error {
  if (error instanceof EngineUnreachable) return error;
  const words = error instanceof Error ? error.message : String(error);
  const byEngine = error instanceof EngineError || error instanceof PullError || !(error instanceof Error);
  if (byEngine) return new PullError(`the image "${image}" could not be pulled: ${words}`);
  if ('code' in error) return new EngineUnreachable(`the Docker engine at ${client.name} broke off a pull: ${words}`);
  return new PullError(words);
}

const event = z.looseObject({
  id: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});

/** How often the log says how far a layer is. */
const progressMs = 1_000;

/** Chooses which events of a pull become lines. */
class PullProgress {
  readonly #say: (line: string) => void;
  readonly #now: () => number;
  readonly #layers = new Map<string, { status: string; saidAt: number }>();

  constructor(say: (line: string) => void, now: () => number) {
    this.#say = say;
    this.#now = now;
  }

  /** Throws `PullError` for the engine's own error, which comes within an answer of success. */
  note(line: string): void {
    const parsed = event.safeParse(parseJson(line));
    if (!parsed.success) return;
    const { id = '', status = '', error, progressDetail } = parsed.data;
    if (error !== undefined) throw new PullError(error.trim());
    if (status === '') return;
    const known = this.#layers.get(id);
    if (known?.status === status && this.#now() - known.saidAt < progressMs) return;
    this.#layers.set(id, { status, saidAt: this.#now() });
    this.#say(`${id === '' ? '' : `${id}: `}${status.trim()}${formatProgress(progressDetail)}`);
  }
}

function formatProgress(detail: { current?: number | undefined; total?: number | undefined } = {}): string {
  const { current, total } = detail;
  if (current === undefined || total === undefined || total <= 0) return '';
  return ` ${(current / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function* lines(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const piece of stream) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
  if (rest !== '') yield rest;
}
