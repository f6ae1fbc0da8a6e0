/**
 * Limits the bytes of request bodies that this process holds at the same time. Each endpoint limits a single body, but 150 of
 * 4 MiB would still be 600 MB, and several times that once they are parsed.
 *
 * 1. A body counts from the moment its sender is known until its request is answered.
 * 2. All callers of one tenant share a limit, so that one tenant cannot keep the others from sending.
 * 3. A request that does not fit is rejected with 503 before its body is read. Clients retry.
 */
import type { Caller } from '../../contract/roles.ts';
import { MillraceError } from '../../errors.ts';

const bodyBudget = {
  totalBytes: 256 * 1024 * 1024,
  shareBytes: 64 * 1024 * 1024,
  /** Smaller bodies are not counted, so that a worker's heartbeat is accepted while its logs fill the share. */
  freeBytes: 64 * 1024,
  /** The largest body that any endpoint accepts. A body of unknown length counts as this long. */
  maxBodyBytes: 4 * 1024 * 1024,
};

/** What the headers of a request say about its body. */
export interface AnnouncedBody {
  readonly method: string;
  /** The `Content-Length`. */
  readonly length: string | null;
  readonly isChunked: boolean;
}

export class BodyBudget {
  readonly #limits: typeof bodyBudget;
  #heldBytes = 0;
  /** By tenant; keys of the whole installation have an entry each. */
  readonly #shares = new Map<string, number>();

  constructor(limits = bodyBudget) {
    this.#limits = limits;
  }

  /** Returns a function that releases the bytes; call it once. */
  take(announced: AnnouncedBody, caller: Caller): () => void {
    const bytes = this.#sizeOf(announced);
    if (bytes <= this.#limits.freeBytes) return () => {};
    const holder = caller.tenantId ?? (caller.kind === 'task' ? '' : caller.actor);
    const share = (this.#shares.get(holder) ?? 0) + bytes;
    const { totalBytes, shareBytes } = this.#limits;
    if (share > shareBytes || this.#heldBytes + bytes > totalBytes)
      throw new MillraceError('overloaded', 'too many large bodies are being sent at once; try again in a moment');
    this.#heldBytes += bytes;
    this.#shares.set(holder, share);
    return () => this.#giveBack(holder, bytes);
  }

  #giveBack(holder: string, bytes: number): void {
    this.#heldBytes -= bytes;
    const left = (this.#shares.get(holder) ?? 0) - bytes;
    if (left > 0) this.#shares.set(holder, left);
    else this.#shares.delete(holder);
  }

  #sizeOf({ method, length, isChunked }: AnnouncedBody): number {
    if (method === 'GET' || method === 'HEAD') return 0;
    // a longer one is rejected without being read
    if (length !== null) return Math.min(Number(length), this.#limits.maxBodyBytes);
    return isChunked ? this.#limits.maxBodyBytes : 0;
  }
}

export function announcedBody({ method, headers }: Request): AnnouncedBody {
  return { method, length: headers.get('content-length'), isChunked: headers.has('transfer-encoding') };
}
