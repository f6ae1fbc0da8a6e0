/**
 * A host's words to the launcher: gathered, written in one statement, and written again where that failed. Where the
 * database refuses some of them (a row that somebody has locked), the others do not wait for these, which are tried again
 * now and then.
 */
import { performance } from 'node:perf_hooks';
import { isStatementRejection } from '../errors.ts';
import type { Bell } from '../kernel/bell.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import { growingTo, loop, type Service } from '../kernel/service.ts';
import type { Word } from './host-queries.ts';

export interface WordsOptions {
  readonly bell: Bell;
  readonly write: (words: readonly Word[]) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** How long one that was refused is left out; default: five seconds. */
  readonly againMs?: number;
}

const longestWaitMs = 1_000;
const usualAgainMs = 5_000;

export class Words {
  /** By tenant: a newer word makes an older one needless. */
  readonly #unwritten = new Map<string, Word>();
  /** Tenants whose words are refused, and until when they are left out. */
  readonly #refused = new Map<string, number>();
  readonly #options: WordsOptions;
  readonly service: Service;

  constructor(options: WordsOptions) {
    this.#options = options;
    // never quiet before its stop: schedulers that stop still have something to report
    const { name, start, stop } = loop(
      'words',
      async (signal) => {
        await options.bell.wait(longestWaitMs, signal);
        await this.flush();
      },
      options.onError,
      growingTo(longestWaitMs),
    );
    this.service = { name, start, stop };
  }

  say(word: Word): void {
    this.#unwritten.set(word.tenantId, word);
    this.#options.bell.ring();
  }

  /** Tenants of whom it would say something, and cannot: nobody is to wait for that. */
  get unsaid(): string[] {
    return [...this.#refused.keys()];
  }

  /** Those of a host that was written off concern nobody. */
  forget(): void {
    this.#unwritten.clear();
    this.#refused.clear();
  }

  async flush(): Promise<void> {
    const nowMs = performance.now();
    const words = [...this.#unwritten.values()];
    await this.#write(words.filter(({ tenantId }) => !this.#refused.has(tenantId)));
    await this.#write(words.filter(({ tenantId }) => (this.#refused.get(tenantId) ?? nowMs + 1) <= nowMs));
  }

  async #write(words: readonly Word[]): Promise<void> {
    if (words.length === 0) return;
    const { write, onError, againMs = usualAgainMs } = this.#options;
    const refused = await isolateRejected(words, write, { isRejection: isStatementRejection });
    for (const word of words) {
      const { tenantId } = word;
      if (refused.has(word)) this.#refused.set(tenantId, performance.now() + againMs);
      else {
        this.#refused.delete(tenantId);
        if (this.#unwritten.get(tenantId) === word) this.#unwritten.delete(tenantId);
      }
    }
    for (const error of refused.values()) onError(error);
  }
}
