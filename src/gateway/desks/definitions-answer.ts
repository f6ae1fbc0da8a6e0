/**
 * The answer to a worker's request for definitions, with a limit in bytes. One definition may take 512 KiB (its task, and the
 * params of its job), and a worker may request a thousand.
 *
 * Definitions are read in pieces until the answer is full. As long as they are small, each piece is 16 times as large as
 * the one before, up to 512. A tenant whose definitions did not all fit is listed among the failures, and the worker requests those again.
 */
import { answerFull, type DefinitionKey, type Failure, type TaskDefinition } from '../../contract/wire.ts';

const definitionLimits = {
  /** No further piece is read once the answer has this size. */
  answerBytes: 4 * 1024 * 1024,
  /** The number of definitions in the first piece, 16 MiB at most. */
  perPiece: 32,
  /** How much larger a piece is than the small one before: a thousand small definitions are read in three pieces. */
  growth: 16,
  maxPerPiece: 512,
  /** A piece of fewer bytes than this is small. */
  smallBytes: 256 * 1024,
};

export class DefinitionsAnswer {
  readonly definitions: TaskDefinition[] = [];
  readonly failed: Failure[] = [];
  readonly #limits: typeof definitionLimits;
  #bytes = 0;

  constructor(limits = definitionLimits) {
    this.#limits = limits;
  }

  async fill(
    tenant: string,
    keys: readonly DefinitionKey[],
    withinMs: number,
    read: (some: readonly DefinitionKey[], leftMs: number) => Promise<readonly TaskDefinition[]>,
  ): Promise<void> {
    const { answerBytes, perPiece, growth, maxPerPiece, smallBytes } = this.#limits;
    const deadlineMs = performance.now() + withinMs;
    let size = perPiece;
    for (let i = 0; i < keys.length; ) {
      if (this.#bytes >= answerBytes) {
        this.failed.push({ tenant, code: answerFull, detail: 'the answer is full; request the others again' });
        return;
      }
      const piece = await read(keys.slice(i, i + size), Math.max(1, deadlineMs - performance.now()));
      const before = this.#bytes;
      for (const definition of piece) this.#bytes += Buffer.byteLength(JSON.stringify(definition));
      this.definitions.push(...piece);
      i += size;
      size = this.#bytes - before < smallBytes ? Math.min(size * growth, maxPerPiece) : perPiece;
    }
  }
}
