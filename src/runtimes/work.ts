/**
 * What a kind of work is: the part that documents, the engine and workers share. It holds data and pure functions only, so
 * that the engine loads nothing of what executes tasks.
 *
 * A document has a field (`docker: {…}`). `build` turns the field into a block, which is stored with the run's version and
 * sent to workers. `expand` fills in the placeholders of a block: that is the work which a runtime is given.
 */
import type { z } from 'zod';
import type { RuntimeBlock } from '../contract/wire.ts';
import { shapeFaults } from '../kernel/text/shape-faults.ts';

/** How the texts of a block are filled in. */
export interface Texts {
  text(text: string): string;
  /** Every string inside a JSON value. */
  value(value: unknown): unknown;
}

/** Leaves placeholders as the document has them. */
export const asWritten: Texts = { text: (text) => text, value: (value) => value };

/** Work in the terms of the API. */
export interface WorkView {
  readonly command: readonly string[] | null;
  readonly image: string | null;
  readonly cwd: string | null;
  readonly input: unknown;
}

export const emptyView: WorkView = { command: null, image: null, cwd: null, input: null };

interface Traits<K extends string> {
  /** Also the name of its field in documents, and the first half of its lanes. */
  readonly kind: K;
  /** Its tasks run on the worker's own machine, so `MILLRACE_LOCAL_TASKS` decides which tenants may have them. */
  readonly isLocal: boolean;
  /** What to do when no worker serves it. `flags` select the queue: `''` or ` --queue NAME`. */
  remedy(flags: string): string;
}

/** A kind of work as the table (`kinds.ts`) holds it. */
export interface KindOfWork<K extends string, W> extends Traits<K> {
  /** Throws an error that names the faults if the block is not of this kind's shape. */
  expand(block: RuntimeBlock, texts: Texts): W;
  view(block: RuntimeBlock, texts: Texts): WorkView;
}

/** A kind of work that has a field in documents; only `none` has none. */
export interface DocumentedKind<K extends string, W> extends KindOfWork<K, W> {
  readonly schema: z.ZodObject;
  /** What the field means, as a sentence. */
  readonly summary: string;
  /** The members of the field whose texts may hold placeholders, beside `env`. */
  readonly templates: readonly string[];
  /** `field` has passed `schema`. */
  build(field: unknown): RuntimeBlock;
}

interface Definition<K extends string, D extends z.ZodObject, B extends { kind: K }, W extends { kind: K }>
  extends Traits<K> {
  readonly summary: string;
  readonly schema: D;
  readonly templates: readonly (keyof z.infer<D> & string)[];
  /** The block without its `env`, which all kinds have in common. */
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
    // checked by the schema of documents, of which `schema` is a part
    build: (field) => definition.build(field as z.infer<D>),
    expand,
    view: (block, texts) => ({ ...emptyView, ...definition.view(expand(block, texts)) }),
  };
}

/** A server of another release may know fields that this one does not understand. */
function parseBlock<B>(schema: z.ZodType<B>, block: RuntimeBlock): B {
  const parsed = schema.safeParse(block);
  if (parsed.success) return parsed.data;
  const faults = shapeFaults(parsed.error.issues).map(({ path, message }) => `${path} ${message}`);
  throw new Error(`its "${block.kind}" block is not understood: ${faults.join('; ')}`);
}
