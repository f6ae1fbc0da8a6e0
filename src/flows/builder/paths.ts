/**
 * Typed paths and expressions of the builder. A path is a proxy that writes what is read of it: `f.order.items` becomes the
 * expression `f.order.items`. Only the text is kept.
 */

declare const resultType: unique symbol;

/** An expression whose value has this type. */
export interface Expr<T> {
  readonly [resultType]?: T;
  toJSON(): string;
}

/** A path to a value of this type, and to everything inside of it. */
export type Path<T> = Expr<T> &
  (T extends readonly (infer Item)[]
    ? { readonly [index: number]: Path<Item> }
    : T extends object
      ? { readonly [K in keyof T]-?: Path<NonNullable<T[K]>> }
      : unknown);

/** A value, or an expression that gives one, at any depth. */
export type Given<T> =
  | Expr<T>
  | (T extends string | number | boolean | null | undefined
      ? T
      : T extends readonly (infer Item)[]
        ? readonly Given<Item>[]
        : { readonly [K in keyof T]: Given<T[K]> });

const sourceOf = Symbol('source');

interface Sourced {
  readonly [sourceOf]: string;
}

/** The text of an expression, without `$(…)`. */
export function sourceText(value: Expr<unknown>): string {
  return (value as unknown as Sourced)[sourceOf];
}

function isExpr(value: unknown): value is Expr<unknown> {
  return typeof value === 'object' && value !== null && sourceOf in value;
}

export function path<T>(source: string): Path<T> {
  const target = expression(source);
  return new Proxy(target, {
    get(_, key) {
      if (typeof key !== 'string' || key === 'toJSON') return Reflect.get(target, key) as unknown;
      return path(`${source}${memberText(key)}`);
    },
    has: (_, key) => Reflect.has(target, key),
  }) as Path<T>;
}

function memberText(key: string): string {
  if (/^\d+$/.test(key)) return `[${key}]`;
  return /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function expression<T>(source: string): Expr<T> {
  const made: Expr<T> & Sourced = { [sourceOf]: source, toJSON: () => `$(${source})` };
  return made;
}

/** An expression in CEL: x<boolean>`${f.total} > 1000`. Paths stand for themselves, other values become literals. */
export function x<T>(texts: TemplateStringsArray, ...values: readonly unknown[]): Expr<T> {
  const literal = (value: unknown): string => (isExpr(value) ? sourceText(value) : JSON.stringify(value));
  return expression(texts.map((text, i) => text + (i < values.length ? literal(values[i]) : '')).join(''));
}
