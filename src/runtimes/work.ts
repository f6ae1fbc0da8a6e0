/**
 * The definition of a kind of work: the part that documents, the engine and workers share. It has data and pure functions only, so
 * that the engine loads no code that executes tasks.
 *
 * A document has a field (`docker: {…}`). `build` converts the field to a block, which is stored with the run's version and sent
 * to workers. `expand` fills in the placeholders of a block: the result is the work that a runtime gets.
 */
import type { z } from 'zod';
import type { RuntimeBlock } from '../contract/wire.ts';
import { shapeFaults } from '../kernel/text/shape-faults.ts';

/** Functions that expand the texts of a block. */
export interface Texts {
  text(text: string): string;
  /** Expands every string inside a JSON value. */
  value(value: unknown): unknown;
}

/** Keeps placeholders as in the document. */
export const asWritten: Texts = { text: (text) => text, value: (value) => value };

/** The fields of work in the API. */
export interface WorkView {
  readonly command: readonly string[] | null;
  readonly image: string | null;
  readonly cwd: string | null;
  readonly input: unknown;
  /** Fields of a container as names and texts, such as `memory` and `512 MiB`; null for work of other kinds. */
  readonly container: Readonly<Record<string, string>> | null;
}

export const emptyView: WorkView = { command: null, image: null, cwd: null, input: null, container: null };

interface Traits<K extends string> {
  /** Also the name of its field in documents, and the first part of its lanes. */
  readonly kind: K;
  /** Its tasks run on the worker's own machine, so `MILLRACE_LOCAL_TASKS` decides which tenants may use it. */
  readonly isLocal: boolean;
  /** Its tasks get Millrace's variables, besides those of their document. */
  readonly hasVariables: boolean;
  /** The advice if no worker serves it. `flags` select the queue: `''` or ` --queue NAME`. */
  remedy(flags: string): string;
}

/** A kind of work in the table (`kinds.ts`). */
export interface KindOfWork<K extends string, W> extends Traits<K> {
  /** Throws an error with the faults if the block does not have the shape of this kind. */
  expand(block: RuntimeBlock, texts: Texts): W;
  view(block: RuntimeBlock, texts: Texts): WorkView;
}

/** A kind of work with a field in documents; only `none` has no field. */
export interface DocumentedKind<K extends string, W> extends KindOfWork<K, W> {
  readonly schema: z.ZodObject;
  /** The meaning of the field, as a sentence. */
  readonly summary: string;
  /** The members of the field whose texts may contain placeholders, besides `env`. */
  readonly templates: readonly string[];
  /** `field` has passed `schema`. */
  build(field: unknown): RuntimeBlock;
}

interface Definition<K extends string, D extends z.ZodObject, B extends { kind: K }, W extends { kind: K }>
  extends Traits<K> {
  readonly summary: string;
  readonly schema: D;
  readonly templates: readonly (keyof z.infer<D> & string)[];
  /** The block without its `env`, which all kinds have. */
  readonly block: z.ZodType<B>;
  build(field: z.infer<D>): B & RuntimeBlock;
  expand(block: B, texts: Texts): W;
  view(work: W): Partial<WorkView>;
}

export function defineKind<const K extends string, D extends z.ZodObject, B extends { kind: K }, W extends { kind: K }>(
  definition: Definition<K, D, B, W>,
): DocumentedKind<K, W> {
  const expand = (block: RuntimeBlock, texts: Texts): W =>
    definition.expand(parseBlock(definition.block, block), texts);
  return {
    ...definition,
    // validated by the schema of documents, which includes `schema`
    build: (field) => definition.build(field as z.infer<D>),
    expand,
    view: (block, texts) => ({ ...emptyView, ...definition.view(expand(block, texts)) }),
  };
}

/** A server of another release may use fields that this one does not know. */
function parseBlock<B>(schema: z.ZodType<B>, block: RuntimeBlock): B {
  const parsed = schema.safeParse(block);
  if (parsed.success) return parsed.data;
  const faults = shapeFaults(parsed.error.issues).map(({ path, message }) => `${path} ${message}`);
  throw new Error(`its "${block.kind}" block is not valid: ${faults.join('; ')}`);
}
