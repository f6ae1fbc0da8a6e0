/**
 * A host's words to the launcher: gathered, written in one statement, and written again where that failed. Where the
 * database refuses one of them, the others do not wait for it.
 */
import { isRefusal } from '../errors.ts';
import type { Bell } from '../kernel/bell.ts';
import { type Service, steady } from '../kernel/service.ts';
import type { Word } from './host-queries.ts';

export interface WordsOptions {
  readonly bell: Bell;
  readonly write: (words: readonly Word[]) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

const longestWaitMs = 1_000;

/** Writes all at once; where one of them is refused, each by itself, and what is refused then is only told. */
export async function eachThatCan<T>(
  items: readonly T[],
  write: (items: readonly T[]) => Promise<void>,
  onRefused: (error: unknown) => void,
): Promise<void> {
  try {
    await write(items);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    for (const item of items) {
      await write([item]).catch((refusal: unknown) => {
        if (!isRefusal(refusal)) throw refusal;
        onRefused(refusal);
      });
    }
  }
}

export class Words {
  /** By tenant: a newer word makes an older one needless. */
  readonly #unwritten = new Map<string, Word>();
  readonly #options: WordsOptions;
  readonly service: Service;

  constructor(options: WordsOptions) {
    this.#options = options;
    this.service = steady(
      'words',
      async (signal) => {
        await options.bell.wait(longestWaitMs, signal);
        await this.flush();
      },
      options.onError,
    );
  }

  say(word: Word): void {
    this.#unwritten.set(word.tenantId, word);
    this.#options.bell.ring();
  }

  /** Those of a host that was written off concern nobody. */
  forget(): void {
    this.#unwritten.clear();
  }

  async flush(): Promise<void> {
    const words = [...this.#unwritten.values()];
    if (words.length === 0) return;
    const { write, onError } = this.#options;
    await eachThatCan(words, write, onError);
    for (const word of words) if (this.#unwritten.get(word.tenantId) === word) this.#unwritten.delete(word.tenantId);
  }
}
